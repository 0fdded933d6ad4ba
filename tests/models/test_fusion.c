/* Which layers a plan makes part of the layer before them. */
#include "kernels/conv.h"
#include "tests/models/batch.h"

struct fused {
    const char *path; /* of the layer that does it all */
    bool sums;
    enum pnet_activation act;
};

/* The model whose net has this body, of x and y with 6 channels each. */
static struct pnet_compilation *compile(const char *body, bool apart)
{
    static const char around[] = "pnet 1\n"
                                 "input cloud { xyz : position  f : feature[6]  e : feature[6]  "
                                 "label : class[6] per point }\n"
                                 "net n(p: cloud) {\n"
                                 "  g = grid(p, 10cm)\n"
                                 "  x = p.f -> pool(mean, to=g)\n"
                                 "  y = p.e -> pool(mean, to=g)\n"
                                 "%s"
                                 "}\n"
                                 "r = n(cloud)\n"
                                 "loss ce = cross_entropy(r, cloud.label)\n";
    char text[1024];
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING, .no_fusion = apart};
    snprintf(text, sizeof text, around, body);
    return need_plan(pnet_compile_text("fusion.pnet", text, strlen(text), &o), body);
}

static int layers(const struct pnet_plan *p)
{
    int count = 0;
    for (int n = 0; n < p->node_count; n++) count += !p->nodes[n].dead;
    return count;
}

/* Of all layers that have something fused to them there is `want` alone; `fewer` are left out. */
static void check(const char *body, struct fused want, int fewer)
{
    struct pnet_compilation *c = compile(body, false), *apart = compile(body, true);
    const struct pnet_plan *p = pnet_compilation_plan(c), *q = pnet_compilation_plan(apart);
    for (int n = 0; n < q->node_count; n++) CHECK(!q->nodes[n].sums && !q->nodes[n].act);
    CHECKF(
        layers(q) - layers(p) == fewer, "%s: %d layers instead of %d", body, layers(p), layers(q));
    bool found = !want.path;
    for (int n = 0; n < p->node_count; n++) {
        const struct pnet_node *node = &p->nodes[n];
        bool is = want.path && strcmp(node->path, want.path) == 0;
        if (node->dead) continue;
        CHECKF(node->sums == (is && want.sums) && node->act == (is ? (int)want.act : 0),
            "%s: %s has %s%d", body, node->path, node->sums ? "a sum and " : "", node->act);
        CHECK(!node->sums || node->in_count == 2);
        for (int i = 0; i < node->in_count; i++) /* every node comes behind what it reads */
            CHECKF(p->tensors[node->in[i]].node < n, "%s: %s comes too early", body, node->path);
        found |= is;
    }
    CHECKF(found, "%s: no %s", body, want.path);
    pnet_compilation_free(c);
    pnet_compilation_free(apart);
}

int main(void)
{
    const struct fused none = {NULL, false, PNET_ACT_NONE};
    check("  a = x -> bn\n  return a + y -> relu\n", (struct fused){"n.a.bn", true, PNET_ACT_RELU},
        2);
    check("  a = x -> bn\n  return y + a\n", (struct fused){"n.a.bn", true, PNET_ACT_NONE}, 1);
    /* the later of two */
    check(
        "  a = x -> bn\n  b = y -> linear(6) -> instancenorm\n  return a + b -> leaky_relu(0.1)\n",
        (struct fused){"n.b.instancenorm", true, PNET_ACT_LEAKY}, 2);
    /* what is added is made behind the norm */
    check("  a = x -> bn\n  b = y -> linear(6)\n  return a + b -> relu\n",
        (struct fused){"n.out.add", false, PNET_ACT_RELU}, 1);
    /* others read the norm's result, or there is something between */
    check("  a = x -> bn\n  b = a + y\n  return a * b\n", none, 0);
    check("  a = x -> bn -> gelu\n  return a + y\n", none, 0);
    check("  a = x -> bn -> relu\n  return a + y\n", (struct fused){"n.a.bn", false, PNET_ACT_RELU},
        1);
    /* a difference, and a sum with the norm's own input */
    check("  a = x -> bn\n  return a - y\n", none, 0);
    check("  a = x -> bn\n  return a + x\n", none, 0);
    check("  a = x -> bn\n  return a + a\n", none, 0);
    /* one sum a norm */
    check("  a = x -> bn\n  return a + y + (x -> gelu)\n",
        (struct fused){"n.a.bn", true, PNET_ACT_NONE}, 1);
    return check_end();
}
