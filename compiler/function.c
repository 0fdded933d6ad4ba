/* The functions of the language, beside the layers: builtin.c runs them. */
#include "compiler/call.h"

#include <string.h>

const struct builtin pnet_builtins[BUILTINS] = {
    [GRID] = {{"grid", "grid(p, cells)", "a level for a cell size, a list of levels for a list"}, 2,
        2, NULL},
    [POINTS] = {{"points", "points(level, n)",
                    "a level of `n` generated points for each row of another level"},
        2, 2, NULL},
    [CHUNKS] =
        {{"chunks", "chunks(level, n)",
             "a level with a row for every `n` rows of another level, a list of levels for a list"},
            2, 2, NULL},
    [LEVEL] = {{"level", "level(x)", "the level of features, or of a cloud"}, 1, 1, NULL},
    [WIDTH] = {{"width", "width(x)", "the channels of features"}, 1, 1, NULL},
    [LEN] = {{"len", "len(list)", "its number of items"}, 1, 1, NULL},
    [MATCHES] = {{"matches", "matches(a, b, T, radius)",
                     "which points of two levels lie near each other under a pose"},
        4, 4, "radius"},
    [SMALLEST] = {{"min", "min(a, ..)", "the smallest of numbers of one unit"}, 1, 16, NULL},
    [LARGEST] = {{"max", "max(a, ..)", "the largest of numbers of one unit"}, 1, 16, NULL},
    [FLOOR] = {{"floor", "floor(x)", "the whole number below"}, 1, 1, NULL},
    [CEIL] = {{"ceil", "ceil(x)", "the whole number above"}, 1, 1, NULL},
    [ROUND] = {{"round", "round(x)", "the nearest whole number"}, 1, 1, NULL},
    [FAIL] = {{"error", "error(\"text\")", "an error with that text where it is reached"}, 1, 1,
        NULL},
};

int pnet_find_builtin(const char *name)
{
    for (int i = 0; i < BUILTINS; i++)
        if (strcmp(pnet_builtins[i].info.name, name) == 0) return i;
    return -1;
}

int pnet_builtin_names(const char **names)
{
    for (int i = 0; i < BUILTINS; i++) names[i] = pnet_builtins[i].info.name;
    return BUILTINS;
}

const struct pnet_builtin_info *pnet_builtin_info(int index)
{
    return index >= 0 && index < BUILTINS ? &pnet_builtins[index].info : NULL;
}
