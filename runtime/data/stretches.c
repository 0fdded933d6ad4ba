#include "runtime/data/stretches.h"

#include <string.h>

static void merge(const struct pnet_placed_row *a, int64_t n, const struct pnet_placed_row *b,
    int64_t m, struct pnet_placed_row *to)
{
    while (n && m) {
        if (a->row < b->row) {
            *to++ = *a++;
            n--;
        } else {
            *to++ = *b++;
            m--;
        }
    }
    memcpy(to, n ? a : b, (size_t)(n + m) * sizeof *to);
}

struct pnet_placed_row *pnet_merge_stretches(
    struct pnet_placed_row *rows, struct pnet_placed_row *room, int64_t *end, int64_t count)
{
    while (count > 1) {
        int64_t joined = 0, begin = 0;
        for (int64_t i = 0; i < count; i += 2) {
            int64_t middle = end[i], last = i + 1 < count ? end[i + 1] : middle;
            merge(rows + begin, middle - begin, rows + middle, last - middle, room + begin);
            end[joined++] = begin = last;
        }
        count = joined;
        struct pnet_placed_row *swap = rows;
        rows = room;
        room = swap;
    }
    return rows;
}
