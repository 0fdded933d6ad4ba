/* Messages about wrong files: text and caret. */
#include "lang/parse.h"
#include "tests/lang/golden.h"

static void run(FILE *out)
{
    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = pnet_diags_new(&a, s);
    CHECK(pnet_parse_file(&a, s, d, "main.pnet") != NULL);
    pnet_diags_print(d, out, false);
    pnet_arena_free(&a);
}

int main(void)
{
    CHECK(golden_run("tests/lang/golden/lexical.txt", run) == 15);
    CHECK(golden_run("tests/lang/golden/syntax.txt", run) == 27);
    CHECK(golden_run("tests/lang/golden/recovery.txt", run) == 6);
    CHECK(golden_run("tests/lang/golden/place.txt", run) == 8);
    CHECK(golden_run("tests/lang/golden/include.txt", run) == 5);
    return check_end();
}
