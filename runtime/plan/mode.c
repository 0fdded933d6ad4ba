#include "runtime/plan/mode.h"

#include "kernels/geometry.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
} words[] = {{"centre", PNET_CENTRE}, {"neighbour", PNET_NEIGHBOUR}, {"kernel", PNET_KERNEL}};
enum { WORDS = sizeof words / sizeof *words };

const char *pnet_mode_text(unsigned degrade, char text[PNET_MODE_TEXT])
{
    *text = '\0';
    if (!degrade) return strcpy(text, "native");
    if (degrade == PNET_VOXEL) return strcpy(text, "voxel");
    for (int i = 0; i < WORDS; i++)
        if (degrade & words[i].bit) {
            if (*text) strcat(text, ",");
            strcat(text, words[i].name);
        }
    return text;
}

bool pnet_degrade_parse(const char *text, unsigned *degrade)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ",");
        bool known = false;
        for (int i = 0; i < WORDS; i++)
            if (strlen(words[i].name) == n && memcmp(p, words[i].name, n) == 0) {
                *degrade |= words[i].bit;
                known = true;
            }
        if (!known) return false;
        p += n + (p[n] == ',');
    }
    return true;
}

bool pnet_mode_parse(const char *text, unsigned *degrade)
{
    bool native = strcmp(text, "native") == 0;
    if (!native && strcmp(text, "voxel") != 0) return pnet_degrade_parse(text, degrade);
    *degrade = native ? 0 : PNET_VOXEL;
    return true;
}
