/* The table of names, compared with what its names say of themselves. */
#include "runtime/base/name_table.h"
#include "tests/check.h"

enum { NAMES = 5000 };

/* Every name is found with its number, also by a text that goes on after it; what begins or ends like a name is not there. */
static void check_names(void)
{
    static char names[NAMES][24];
    struct pnet_name_table t = {.slots = NULL};
    CHECK(pnet_name_table_find(&t, "a", 1) == -1);
    for (int i = 0; i < NAMES; i++) {
        int length = snprintf(names[i], sizeof names[i], "layer%d.weight", 7 * i);
        CHECK(pnet_name_table_at(&t, names[i], (size_t)length, i));
    }
    CHECK(t.count == NAMES && t.size >= 2 * t.count && t.size <= 4 * t.count);
    for (int i = 0; i < NAMES; i++) {
        size_t length = strlen(names[i]);
        char longer[32];
        snprintf(longer, sizeof longer, "%s.more", names[i]);
        CHECK(pnet_name_table_find(&t, longer, length) == i);
        CHECK(pnet_name_table_find(&t, longer, length + 1) == -1);
        CHECK(pnet_name_table_find(&t, longer, length - 1) == -1);
    }
    CHECK(pnet_name_table_find(&t, "layer1.weight", 13) == -1);
    pnet_name_table_free(&t);
    CHECK(!t.slots && !t.count && pnet_name_table_find(&t, names[0], 1) == -1);
}

/* The first of two names keeps its number; a name may be empty, or have zero bytes. */
static void check_same(void)
{
    struct pnet_name_table t = {.slots = NULL};
    CHECK(pnet_name_table_at(&t, "same", 4, 1) && pnet_name_table_at(&t, "same too", 4, 2));
    CHECK(pnet_name_table_at(&t, "", 0, 3) && pnet_name_table_at(&t, "a\0b", 3, 4));
    CHECK(t.count == 3 && pnet_name_table_find(&t, "same", 4) == 1);
    CHECK(pnet_name_table_find(&t, "x", 0) == 3 && pnet_name_table_find(&t, "a\0b", 3) == 4);
    CHECK(pnet_name_table_find(&t, "a\0c", 3) == -1);
    pnet_name_table_free(&t);
}

int main(void)
{
    check_names();
    check_same();
    return check_end();
}
