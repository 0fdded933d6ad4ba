/* Text to tree: what the grammar says, places, and docs. */
#include "tests/lang/parsed.h"

static const char *const examples[] = {
    "tests/lang/models/registration.pnet", "tests/lang/models/classification.pnet"};

static void check_expr(const char *text, const char *want)
{
    char *got = parsed_expr(text, strlen(text));
    CHECKF(!strcmp(got, want), "%s: got %s, expected %s", text, got, want);
    free(got);
}

/* The same tree as the other text, which says with parentheses what binds. */
static void check_same(const char *text, const char *other)
{
    char *want = parsed_expr(other, strlen(other));
    check_expr(text, want);
    free(want);
}

static void test_operands(void)
{
    check_expr("x", "x");
    check_expr("3", "3");
    check_expr("3.0", "3.0");
    check_expr("1e3", "1000.0");
    check_expr("5cm", "0.05m");
    check_expr("7mm", "0.007m");
    check_expr("2km", "2000.0m");
    check_expr("1.5m", "1.5m");
    check_expr("0.5rad", "0.5rad");
    check_expr("180deg", "3.141592653589793rad");
    check_expr("50%", "0.5:1");
    check_expr("2e-3m", "0.002m");
    check_expr("\"a\\\"b\\\\\"", "\"a\\\"b\\\\\"");
    check_expr("[]", "[]");
    check_expr("[1, a, [2],]", "[1 a [2]]");
    check_expr("f()", "(call f)");
    check_expr("f(a, k=3, to=g[i],)", "(call f a k=3 to=(index g i))");
    check_expr("s[i-1]", "(index s (- i 1))");
    check_expr("s[i][j].rgb[0]", "(index (field (index (index s i) j) rgb) 0)");
    check_expr("level(x).n", "(field (call level x) n)");
    check_expr("((x))", "x");
    check_expr("cloud.in", "(field cloud in)");
    check_expr("in + out * to - yes / no", "(- (+ in (* out to)) (/ yes no))");
}

static void test_precedence(void)
{
    check_same("a - b - c", "(a - b) - c");
    check_same("a / b * c % d", "((a / b) * c) % d");
    check_same("a + b * c", "a + (b * c)");
    check_same("-a * b", "(-a) * b");
    check_same("- -a", "-(-a)");
    check_same("-a[0].b", "-((a[0]).b)");
    check_same("a + b < c * d", "(a + b) < (c * d)");
    check_same("not a == b", "not (a == b)");
    check_same("not a and not b or c", "((not a) and (not b)) or c");
    check_same("a or b and c", "a or (b and c)");
    check_same("not not a", "not (not a)");
    check_same("a and b == c", "a and (b == c)");
    check_same("i % 2", "(i) % (2)");
    check_same("50% * 3", "(50%) * (3)");
    check_same("v * [1, 2, 4]", "(v) * ([1, 2, 4])");
    check_same("if a then b else c + d", "if (a) then (b) else (c + d)");
    check_same("if a then b else if c then d else e", "if a then b else (if c then d else e)");
    check_same("if a then if b then c else d else e", "if a then (if b then c else d) else e");
    check_expr("a < b", "(< a b)");
    check_expr("a <= b", "(<= a b)");
    check_expr("a > b", "(> a b)");
    check_expr("a >= b", "(>= a b)");
    check_expr("a != b", "(!= a b)");
    check_expr("-3", "(neg 3)");
}

static void test_pipes(void)
{
    check_expr("a -> f", "(pipe f a)");
    check_expr("a -> f(1) -> g", "(pipe g (pipe f a 1))");
    check_expr("y + in -> relu", "(pipe relu (+ y in))");
    check_same("y + in -> relu", "(y + in) -> relu");
    check_same("a or b -> f", "(a or b) -> f");
    check_expr("a -> f(b) -> g * 2", "(pipe g (pipe f a b) * 2)");
    check_expr("a -> f(b) * n[0] -> g", "(pipe g (pipe f a b * (index n 0)))");
    check_expr("a -> f * (n + 1)", "(pipe f a * (+ n 1))");
    check_expr("f(a -> g, b)", "(call f (pipe g a) b)");
    check_same("if c then in else in -> pool(mean, to=to) -> bn",
        "if c then in else (in -> pool(mean, to=to) -> bn)");
    check_expr("(if c then a else b) -> f", "(pipe f (if c a b))");
    check_expr("(a -> f) * 2", "(* (pipe f a) 2)");
}

static void check_tree(const char *text, const char *want)
{
    struct parsed *p = parsed_text(text);
    CHECKF(!parsed_errors(p), "%s\n%s", text, p->messages);
    CHECK_STR(p->tree, want);
    parsed_free(p);
}

static void test_items(void)
{
    check_tree("pnet 1", "pnet 1\n");
    check_tree("pnet 1 param v = 5cm const m = 0.05 loss a = f(b) metric c = d x = 3 s[0][i] = 4",
        "pnet 1\nparam v = 0.05m\nconst m = 0.05\nloss a = (call f b)\nmetric c = d\nx = 3\n"
        "s[0][i] = 4\n");
    check_tree("pnet 1 input T : pose input p { xyz : position rgb : feature[3]"
               " label : class[n + 1] per point } input q { }",
        "pnet 1\ninput T : pose\ninput p\n  xyz : position\n  rgb : feature[3]\n"
        "  label : class[(+ n 1)] per point\ninput q\n");
    check_tree("pnet 1 block a() { } block b(c, k=3, to: cloud = x,) { y = 3 }",
        "pnet 1\nblock a()\nblock b(c, k = 3, to: cloud = x)\n  y = 3\n");
    check_tree("pnet 1 net f(p: cloud) { return p }", "pnet 1\nnet f(p: cloud)\n  return p\n");
}

static void test_statements(void)
{
    check_tree("pnet 1 net f(p) { x = a y = b[0] z[i] = c for i = 1..3 { w = i } return x }",
        "pnet 1\nnet f(p)\n  x = a\n  y = (index b 0)\n  z[i] = c\n  for i = 1 .. 3\n    w = i\n"
        "  return x\n");
    check_tree("pnet 1 net f(p) { for i = n-1 .. 2*m { for j = 0..i { } } }",
        "pnet 1\nnet f(p)\n  for i = (- n 1) .. (* 2 m)\n    for j = 0 .. i\n");
    check_tree("pnet 1 net f(p) { if a { x = 1 } if b { } else { y = 2 } "
               "if c { } else if d { z = 3 } else { w = 4 } }",
        "pnet 1\nnet f(p)\n  if a\n    x = 1\n  if b\n  else\n    y = 2\n"
        "  if c\n  else\n    if d\n      z = 3\n    else\n      w = 4\n");
    /* `if` after a whole expression begins a statement; after an operator it would be a value. */
    check_tree("pnet 1 net f(p) { x = a if b { y = if c then d else e if g { } } }",
        "pnet 1\nnet f(p)\n  x = a\n  if b\n    y = (if c d e)\n    if g\n");
    check_tree("pnet 1 x\n=\na\n->\nf\n(\n)\ny\n=\n3", "pnet 1\nx = (pipe f a)\ny = 3\n");
    check_tree("\xef\xbb\xbfpnet 1\r\nx = 3\r\n", "pnet 1\nx = 3\n");
}

static void test_docs(void)
{
    check_tree(
        "pnet 1\n## the file\n##  goes on \nx = 3", "pnet 1  ## \"the file\\n goes on\"\nx = 3\n");
    check_tree(
        "pnet 1 ## the file\n\n## of x\nx = 3", "pnet 1  ## \"the file\"\nx = 3  ## \"of x\"\n");
    check_tree("pnet 1\n\n## a\n## b\nx = 3", "pnet 1\nx = 3  ## \"a\\nb\"\n");
    check_tree("pnet 1\nx = 3 ## of x\ny = 4", "pnet 1\nx = 3  ## \"of x\"\ny = 4\n");
    check_tree(
        "pnet 1\n# no doc\n## above\nx = 3 ## behind\n", "pnet 1\nx = 3  ## \"above\\nbehind\"\n");
    check_tree("pnet 1\nx = 3 y = 4 ## of x\n", "pnet 1\nx = 3  ## \"of x\"\ny = 4\n");
    check_tree("pnet 1\n\n### no doc\n# nor this\nx = 3\n ## nor at the end", "pnet 1\nx = 3\n");
    check_tree("pnet 1\ninput p { ## cloud\n a : b ## of a\n ## of c\n c : d\n ## of none\n}",
        "pnet 1\ninput p  ## \"cloud\"\n  a : b  ## \"of a\"\n  c : d  ## \"of c\"\n");
    check_tree("pnet 1\nnet f(p) { ## net\n ## x\n x = 3\n if a { ## if\n y = 4 } ## y\n }\n",
        "pnet 1\nnet f(p)  ## \"net\"\n  x = 3  ## \"x\"\n  if a  ## \"if\"\n    y = 4  ## "
        "\"y\"\n");
    /* In the middle of a statement nothing begins. */
    check_tree(
        "pnet 1\nx = a ## of x\n## none\n -> f ## none\n", "pnet 1\nx = (pipe f a)  ## \"of x\"\n");
}

static void check_span(const struct parsed *p, const struct pnet_expr *e);

static void check_name(const struct parsed *p, const char *name, struct pnet_span span)
{
    const char *text = pnet_sources_get(p->sources, span.file)->text;
    CHECKF(span.end - span.begin == strlen(name) && !memcmp(text + span.begin, name, strlen(name)),
        "%s at %u", name, span.begin);
}

static void check_parts(const struct parsed *p, const struct pnet_expr *e)
{
    switch (e->kind) {
    case PNET_EXPR_NUMBER:
    case PNET_EXPR_STRING:
    case PNET_EXPR_NAME: break;
    case PNET_EXPR_LIST:
        for (int i = 0; i < e->list.count; i++) check_span(p, e->list.items[i]);
        break;
    case PNET_EXPR_INDEX:
        check_span(p, e->index.base);
        check_span(p, e->index.index);
        break;
    case PNET_EXPR_FIELD:
        check_span(p, e->field.base);
        check_name(p, e->field.name, e->field.name_span);
        break;
    case PNET_EXPR_CALL:
    case PNET_EXPR_PIPE:
        check_name(p, e->call.name, e->call.name_span);
        if (e->call.piped) check_span(p, e->call.piped);
        if (e->call.repeat) check_span(p, e->call.repeat);
        for (const struct pnet_call_arg *a = e->call.args; a; a = a->next) {
            check_span(p, a->value);
            if (a->name) check_name(p, a->name, a->name_span);
        }
        break;
    case PNET_EXPR_UNARY:
    case PNET_EXPR_BINARY:
        check_span(p, e->binary.left);
        if (e->binary.right) check_span(p, e->binary.right);
        break;
    case PNET_EXPR_IF:
        check_span(p, e->conditional.condition);
        check_span(p, e->conditional.then);
        check_span(p, e->conditional.otherwise);
        break;
    }
}

/* What the text of a node says alone is the node. */
static void check_span(const struct parsed *p, const struct pnet_expr *e)
{
    char *want = NULL;
    size_t ignored;
    FILE *out = open_memstream(&want, &ignored);
    pnet_expr_dump(out, e);
    fclose(out);
    const char *text = pnet_sources_get(p->sources, e->span.file)->text;
    char *got = parsed_expr(text + e->span.begin, e->span.end - e->span.begin);
    CHECK_STR(got, want);
    free(got);
    free(want);
    check_parts(p, e);
}

static void check_stmts(const struct parsed *p, const struct pnet_stmt *s)
{
    for (; s; s = s->next) {
        const char *text = pnet_sources_get(p->sources, s->span.file)->text;
        switch (s->kind) {
        case PNET_STMT_ASSIGN:
            check_name(p, s->assign.name, s->assign.name_span);
            CHECK(s->span.begin == s->assign.name_span.begin);
            CHECK(s->span.end == s->assign.value->span.end);
            for (int i = 0; i < s->assign.index_count; i++) check_span(p, s->assign.indices[i]);
            check_span(p, s->assign.value);
            break;
        case PNET_STMT_FOR:
            check_name(p, s->loop.name, s->loop.name_span);
            check_span(p, s->loop.from);
            check_span(p, s->loop.to);
            check_stmts(p, s->loop.body);
            CHECK(!memcmp(text + s->span.begin, "for", 3) && text[s->span.end - 1] == '}');
            break;
        case PNET_STMT_IF:
            check_span(p, s->conditional.condition);
            check_stmts(p, s->conditional.then);
            check_stmts(p, s->conditional.otherwise);
            CHECK(!memcmp(text + s->span.begin, "if", 2) && text[s->span.end - 1] == '}');
            break;
        case PNET_STMT_RETURN:
            check_span(p, s->value);
            CHECK(!memcmp(text + s->span.begin, "return", 6) && s->span.end == s->value->span.end);
            break;
        }
    }
}

static void check_spans(const struct parsed *p)
{
    for (const struct pnet_item *item = p->file->items; item; item = item->next) {
        if (item->kind != PNET_ITEM_INCLUDE) check_name(p, item->name, item->name_span);
        CHECK(item->span.begin <= item->name_span.begin && item->name_span.end <= item->span.end);
        if (item->value) check_span(p, item->value);
        check_stmts(p, item->stmt);
        for (const struct pnet_field_decl *f = item->fields; f; f = f->next) {
            check_name(p, f->name, f->name_span);
            check_name(p, f->type, f->type_span);
            if (f->size) check_span(p, f->size);
            if (f->per) check_name(p, f->per, f->per_span);
        }
        for (const struct pnet_param_decl *d = item->params; d; d = d->next) {
            check_name(p, d->name, d->name_span);
            if (d->type) check_name(p, d->type, d->type_span);
            if (d->value) check_span(p, d->value);
        }
        if (item->input_type) check_name(p, item->input_type, item->input_type_span);
    }
}

static void test_spans(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct parsed *p = parsed_file(examples[i]);
        CHECK_STR(p->messages, "");
        if (p->file) check_spans(p);
        parsed_free(p);
    }
    struct parsed *p =
        parsed_text("pnet 1\nblock f(a, b: cloud = (3 + 4) * -c[0]) {\n"
                    "  if not (a == b) { x = ((a) -> f * (2)) } else if b { y = [] }\n"
                    "  z[a + 1][(2)] = \"t\"\n}\n");
    CHECK_STR(p->messages, "");
    check_spans(p);
    parsed_free(p);
}

/* Lines of the dump of the examples in which most of the grammar meets. */
static void test_examples(void)
{
    struct parsed *p = parsed_file(examples[0]);
    CHECK(strstr(p->tree, "pnet 1  ## \"FCGF's ResUNet, for registration.\"\n"));
    CHECK(strstr(p->tree, "\nparam v = 0.3m  ## \"cell size of the finest level\"\n"));
    CHECK(strstr(p->tree, "\n  out = (pipe relu (+ y in))\n"));
    CHECK(strstr(p->tree, "\n  s[0] = (pipe res (pipe bn (pipe conv (call ones (index g 0)) "
                          "(index C 0) kernel=5) m) (index C 0))\n"));
    CHECK(strstr(p->tree, "\n  for i = 2 .. 0\n    x = "));
    CHECK(strstr(
        p->tree, "\nM = (call matches (call level fs) (call level fd) T radius=(* 1.5 v))\n"));
    parsed_free(p);
    p = parsed_file(examples[1]);
    CHECK(strstr(p->tree, "\n  label : class[classes] per cloud\n"));
    CHECK(strstr(p->tree,
        "\n  s = (if (and (== (call level in) to) (== (call width in) c)) in (pipe bn "
        "(pipe linear (pipe pool in mean to=to) c bias=no)))\n"));
    CHECK(strstr(p->tree, "(pipe dropout x 0.5:1)"));
    parsed_free(p);
}

static void test_expr_alone(void)
{
    struct {
        const char *text, *want;
    } cases[] = {
        {"", "--set x: error: unexpected end, expected an expression\n"},
        {"3 4", "--set x:1:3: error: unexpected '4'\n    1 | 3 4\n      |   ^\n"},
        {"x = 3", "--set x:1:3: error: unexpected '='\n    1 | x = 3\n      |   ^\n"
                  "  help: compare with ==\n"},
        {"(3", "--set x:1:3: error: unexpected end, expected ')'\n    1 | (3\n      | ~ ^\n"
               "      | ~ opened here\n"},
        {"5 cm", "--set x:1:3: error: unexpected 'cm'\n    1 | 5 cm\n      |   ^~\n"
                 "  help: a unit is written together with its number: 5cm\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_expr(cases[i].text, cases[i].want);
}

int main(void)
{
    test_operands();
    test_precedence();
    test_pipes();
    test_items();
    test_statements();
    test_docs();
    test_spans();
    test_examples();
    test_expr_alone();
    return check_end();
}
