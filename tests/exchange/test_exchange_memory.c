/* Every allocation of import, export, the proposal of a map and its reader fails in turn, alone and with all behind it: an error
   comes back, and nothing leaks. */
#include "runtime/exchange/exchange.h"
#include "runtime/exchange/names.h"
#include "runtime/exchange/propose.h"
#include "tests/heap.h"

#if HEAP_REPLACED
#include "compiler/compile.h"
#include "tests/check.h"
#include "tests/store/folder.h"

static const char model[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3] }\n"
    "net n(p: cloud) {\n"
    "  g = grid(p, 1m * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(4, kernel=3) -> conv(4, kernel=3) -> conv(4, "
    "kernel=3) -> bn\n"
    "  return a -> conv(5, kernel=2, to=g[1]) -> conv(6, kernel=1, bias=yes)\n"
    "}\n"
    "y = n(cloud)\n";

static struct pnet_exchange exchange;
static struct pnet_name_rules map;
static struct pnet_safetensors *ours, *theirs;
static const char *map_path;

static enum pnet_status import(struct pnet_error *e)
{
    struct pnet_exchanged r;
    enum pnet_status st = pnet_import_weights(&exchange, "theirs", theirs, &r, e);
    if (st) return st;
    CHECK(r.counts[PNET_EXCHANGE_TAKEN] == ours->count && r.counts[PNET_EXCHANGE_LEFT] == 1);
    pnet_exchanged_free(&r);
    return PNET_OK;
}

static enum pnet_status export(struct pnet_error *e) {
    struct pnet_exchanged r;
    enum pnet_status st = pnet_export_weights(&exchange, "ours", ours, &r, e);
    if (st) return st;
    CHECK(r.tensor_count == ours->count && pnet_name_is_kernel(r.tensors[0].name));
    pnet_exchanged_free(&r);
    return PNET_OK;
}

static enum pnet_status propose(struct pnet_error *e)
{
    static char text[1 << 14];
    struct pnet_proposal p;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out) return pnet_error_memory(e);
    enum pnet_status st = pnet_propose_map(&exchange, theirs, out, &p, e);
    fclose(out);
    if (!st) CHECK(p.alone == 4 && p.ordered == 2 && !p.open && strstr(text, "open, in the file"));
    return st;
}

static enum pnet_status read_map(struct pnet_error *e)
{
    struct pnet_name_rules r;
    enum pnet_status st = pnet_names_read(map_path, &r, e);
    if (!st) CHECK(r.count == 2);
    pnet_name_rules_free(&r);
    return st;
}

static void check_all(const char *name, enum pnet_status (*work)(struct pnet_error *e))
{
    struct pnet_error e;
    CHECKF(work(&e) == PNET_OK, "%s: %s", name, e.message);
    for (int behind = 0; behind < 2; behind++) {
        long refused = 0, n = 1;
        for (;; n++) {
            heap_begin(n, behind);
            enum pnet_status st = work(&e);
            bool reached = heap.calls >= n;
            heap.counting = false;
            CHECKF(heap.live == 0, "%s: %ld blocks lost at %ld", name, heap.live, n);
            if (!reached) break;
            CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "%s: status %d at %ld: %s", name, st, n,
                e.message);
            refused += st == PNET_NO_MEMORY;
        }
        CHECKF(refused >= 3, "%s: only %ld of %ld refused", name, refused, n);
    }
}

/* Weights of 0, 1, 2 .. in pnet's names; a copy of the exported ones and one tensor more in the library's. */
static void make_files(const struct pnet_plan *p)
{
    static struct pnet_safetensor t[16];
    static float numbers[4096];
    struct pnet_exchanged r;
    struct pnet_error e;
    const char *paths[] = {in_folder("ours"), in_folder("theirs")};
    for (int i = 0; i < 4096; i++) numbers[i] = (float)i;
    for (int i = 0; i < p->param_count; i++) {
        t[i] = (struct pnet_safetensor){
            .name = p->params[i].name, .dims = p->params[i].info.dims, .data = numbers};
        memcpy(t[i].shape, p->params[i].info.shape, sizeof p->params[i].info.shape);
    }
    CHECK(!pnet_safetensors_write(paths[0], t, (size_t)p->param_count, NULL, 0, &e));
    CHECK(!pnet_safetensors_read(paths[0], &ours, &e));
    CHECK(!pnet_export_weights(&exchange, "ours", ours, &r, &e));
    memcpy(t, r.tensors, r.tensor_count * sizeof *t);
    t[r.tensor_count] =
        (struct pnet_safetensor){.name = "other.weight", .dims = 1, .shape = {3}, .data = numbers};
    CHECK(!pnet_safetensors_write(paths[1], t, r.tensor_count + 1, NULL, 0, &e));
    CHECK(!pnet_safetensors_read(paths[1], &theirs, &e));
    pnet_exchanged_free(&r);
}

int main(void)
{
    struct pnet_error e;
    struct pnet_compile_options o = {.purpose = PNET_FOR_EVAL, .no_fusion = true};
    struct pnet_compilation *c = pnet_compile_text("model", model, strlen(model), &o);
    if (!c || !pnet_compilation_plan(c)) return 1;
    make_folder();
    map_path = in_folder("map.yaml");
    FILE *f = fopen(map_path, "w");
    if (!f) return 1;
    fputs("net.layers: n\n'blocks.*.x': 'n.*.y'\n", f);
    fclose(f);
    CHECKF(!pnet_names_read(map_path, &map, &e), "%s", e.message);
    exchange = (struct pnet_exchange){.plan = pnet_compilation_plan(c),
        .library = PNET_LIBRARY_MINKOWSKI,
        .axes = pnet_axes_usual(PNET_LIBRARY_MINKOWSKI),
        .map = &map,
        .map_name = map_path};
    make_files(exchange.plan);
    check_all("import", import);
    check_all("export", export);
    check_all("propose", propose);
    check_all("map", read_map);
    pnet_safetensors_free(ours);
    pnet_safetensors_free(theirs);
    pnet_name_rules_free(&map);
    pnet_compilation_free(c);
    remove_tree(test_folder);
    return check_end();
}
#endif
