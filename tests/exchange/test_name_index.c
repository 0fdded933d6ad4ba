/* Rules of a map are found as a walk over all of them finds them. */
#include "runtime/train/name_index.h"
#include "tests/check.h"

enum { RULES = 60, NAMES = 200 };

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* A text of a few letters and dots, so that many are alike. A tensor may have a * in its name. */
static void draw_text(unsigned *seed, char text[16])
{
    static const char letters[] = "aab.*";
    size_t length = draw(seed, 7);
    for (size_t i = 0; i < length; i++) text[i] = letters[draw(seed, 5)];
    text[length] = 0;
}

/* A side of a rule, with one * or none. */
static char *draw_side(unsigned *seed, bool star)
{
    char text[16];
    do draw_text(seed, text);
    while ((strchr(text, '*') != NULL) != star || (star && strchr(strchr(text, '*') + 1, '*')));
    return strdup(text);
}

static void check_name(
    const struct pnet_name_rules *r, const struct pnet_name_index index[2], const char *name)
{
    for (int back = 0; back < 2; back++) {
        int *rules, count, at = 0;
        bool failed = false;
        CHECK(pnet_name_index_find(&index[back], name, &rules, &count));
        for (int i = 0; i < r->count; i++) {
            char *text = pnet_name_rule_apply(&r->items[i], back, name, &failed);
            bool found = at < count && rules[at] == i;
            CHECKF(found == (text != NULL), "%s, rule %s: %s", name, r->items[i].pattern,
                r->items[i].to);
            at += found;
            free(text);
        }
        CHECK(at == count && !failed);
        if (!back) {
            char *mapped = pnet_name_map(r, &index[0], name),
                 *want = count ? pnet_name_rule_apply(&r->items[rules[0]], false, name, &failed)
                               : strdup(name);
            CHECK_STR(mapped, want);
            free(mapped);
            free(want);
        }
        free(rules);
    }
}

static void check_maps(unsigned seed)
{
    struct pnet_name_rule items[RULES];
    struct pnet_name_rules r = {items, (int)draw(&seed, RULES + 1)};
    struct pnet_name_index index[2];
    for (int i = 0; i < r.count; i++) {
        bool star = draw(&seed, 2);
        items[i] = (struct pnet_name_rule){draw_side(&seed, star), draw_side(&seed, star), 0};
    }
    for (int back = 0; back < 2; back++) CHECK(pnet_name_index_new(&r, back, &index[back]));
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        draw_text(&seed, name);
        check_name(&r, index, name);
    }
    for (int back = 0; back < 2; back++) pnet_name_index_free(&index[back]);
    for (int i = 0; i < r.count; i++) {
        free(items[i].pattern);
        free(items[i].to);
    }
}

int main(void)
{
    for (unsigned seed = 1; seed <= 50; seed++) check_maps(seed);
    return check_end();
}
