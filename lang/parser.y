/* Parses tokens to a syntax tree. Statements end where the next token cannot continue them: they begin with a name or a
   keyword, which never continues an expression. */
%code requires {
#include "lang/internal.h"
}

%code {
/* The place of an empty rule is the end of the symbol before it. */
#define YYLLOC_DEFAULT(current, rhs, n)                                                            \
    do {                                                                                           \
        (current).file = YYRHSLOC(rhs, n).file;                                                    \
        (current).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;                     \
        (current).end = YYRHSLOC(rhs, n).end;                                                      \
    } while (0)
#define YYMAXDEPTH 4000 /* brackets are limited before it, chains of `not`, `-` and `else if` by it */

/* Nodes are NULL only where the parse must stop. */
#define MAKE(result, node)                                                                         \
    do {                                                                                           \
        (result) = (node);                                                                         \
        if (!(result)) YYABORT;                                                                    \
    } while (0)
#define ONE(list, node) ((list).first = (list).last = (node))
#define APPEND(list, node) ((list).last = (list).last->next = (node))
}

%define api.pure full
%define api.prefix {pnet_tree_}
%define api.token.prefix {TOKEN_}
%define api.value.type {union pnet_value}
%define api.location.type {struct pnet_span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {struct pnet_parser *p}
%initial-action { @$ = (struct pnet_span){.file = p->file}; }

/* token.c has a row for each, in this order. END is the end of the text, so that an error there can be
   recovered from; START_ ones say what is parsed; SYNC and BODY stand behind an error, at the end of
   what was skipped: a new statement follows, or the `{ }` of one whose head was wrong. */
%token END START_FILE START_EXPR SYNC BODY
%token PNET INCLUDE PARAM CONST INPUT BLOCK NET LOSS METRIC FOR RETURN IF
%token THEN ELSE PER AND OR NOT
%token <text> NAME
%token <number> NUMBER
%token <text> STRING
%token ARROW RANGE EQ NE LT LE GT GE ASSIGN PLUS MINUS STAR SLASH PERCENT
%token LPAREN RPAREN LBRACKET RBRACKET LBRACE RBRACE COMMA COLON DOT

%type <expr> expr pipe or and not comparison sum product unary operand base stage plain_stage count
%type <op> compare add multiply
%type <arg> arg
%type <args> args arg_list
%type <exprs> list list_items indices
%type <stmt> stmt assign branch
%type <stmts> stmts body otherwise
%type <item> item
%type <field> field typed_field
%type <fields> fields
%type <param> param
%type <params> params param_list

%%

start: START_FILE items END
    | START_EXPR expr END { p->expr = $2; }
    ;

items: %empty
    | items item { if (!pnet_parse_item(p, $2)) YYABORT; }
    | items skipped
    | items headless body
    ;

/* The tokens from an error to the next item. yyerrok: an error in that item is reported again. */
skipped: error SYNC { yyerrok; }
    ;

headless: error BODY { yyerrok; }
    ;

item: INCLUDE STRING { MAKE($$, pnet_tree_item(p, PNET_ITEM_INCLUDE, @$, $2, @2)); }
    | PARAM NAME ASSIGN expr { MAKE($$, pnet_tree_item(p, PNET_ITEM_PARAM, @$, $2, @2)); $$->value = $4; }
    | CONST NAME ASSIGN expr { MAKE($$, pnet_tree_item(p, PNET_ITEM_CONST, @$, $2, @2)); $$->value = $4; }
    | LOSS NAME ASSIGN expr { MAKE($$, pnet_tree_item(p, PNET_ITEM_LOSS, @$, $2, @2)); $$->value = $4; }
    | METRIC NAME ASSIGN expr { MAKE($$, pnet_tree_item(p, PNET_ITEM_METRIC, @$, $2, @2)); $$->value = $4; }
    | INPUT NAME LBRACE fields RBRACE
        { MAKE($$, pnet_tree_item(p, PNET_ITEM_INPUT, @$, $2, @2)); $$->fields = $4.first; }
    | INPUT NAME COLON NAME
        {
            MAKE($$, pnet_tree_item(p, PNET_ITEM_INPUT, @$, $2, @2));
            $$->input_type = $4;
            $$->input_type_span = @4;
        }
    | BLOCK NAME LPAREN params RPAREN body
        {
            MAKE($$, pnet_tree_item(p, PNET_ITEM_BLOCK, @$, $2, @2));
            $$->params = $4.first;
            $$->stmt = $6.first;
        }
    | NET NAME LPAREN params RPAREN body
        {
            MAKE($$, pnet_tree_item(p, PNET_ITEM_NET, @$, $2, @2));
            $$->params = $4.first;
            $$->stmt = $6.first;
        }
    | assign
        {
            MAKE($$, pnet_tree_item(p, PNET_ITEM_ASSIGN, @$, $1->assign.name, $1->assign.name_span));
            $$->stmt = $1;
        }
    ;

fields: %empty { $$ = (struct pnet_fields){0}; }
    | fields field
        {
            $$ = $1;
            if ($$.last) APPEND($$, $2); else ONE($$, $2);
        }
    | fields skipped
    ;

field: typed_field
    | typed_field PER NAME { $$ = $1; $$->per = $3; $$->per_span = @3; }
    ;

typed_field: NAME COLON NAME { MAKE($$, pnet_tree_field_decl(p, $1, @1, $3, @3)); }
    | NAME COLON NAME LBRACKET expr RBRACKET
        { MAKE($$, pnet_tree_field_decl(p, $1, @1, $3, @3)); $$->size = $5; }
    ;

params: %empty { $$ = (struct pnet_params){0}; }
    | param_list
    | param_list COMMA
    ;

param_list: param { ONE($$, $1); }
    | param_list COMMA param { $$ = $1; APPEND($$, $3); }
    ;

param: NAME { MAKE($$, pnet_tree_param_decl(p, $1, @1, NULL)); }
    | NAME ASSIGN expr { MAKE($$, pnet_tree_param_decl(p, $1, @1, $3)); }
    | NAME COLON NAME { MAKE($$, pnet_tree_param_decl(p, $1, @1, NULL)); $$->type = $3; $$->type_span = @3; }
    | NAME COLON NAME ASSIGN expr
        { MAKE($$, pnet_tree_param_decl(p, $1, @1, $5)); $$->type = $3; $$->type_span = @3; }
    ;

body: LBRACE stmts RBRACE { $$ = $2; }
    ;

stmts: %empty { $$ = (struct pnet_stmts){0}; }
    | stmts stmt
        {
            $$ = $1;
            if ($$.last) APPEND($$, $2); else ONE($$, $2);
        }
    | stmts skipped
    | stmts headless body
    | stmts headless body ELSE otherwise
    ;

stmt: assign
    | branch
    | FOR NAME ASSIGN or RANGE or body { MAKE($$, pnet_tree_for(p, @$, $2, @2, $4, $6, $7)); }
    | RETURN expr { MAKE($$, pnet_tree_return(p, @$, $2)); }
    ;

assign: NAME indices ASSIGN expr { MAKE($$, pnet_tree_assign(p, @$, $1, @1, $2, $4)); }
    ;

indices: %empty { $$ = (struct pnet_exprs){0}; }
    | indices LBRACKET expr RBRACKET
        {
            struct pnet_expr_cell *cell;
            MAKE(cell, pnet_tree_cell(p, $3));
            $$ = $1;
            if ($$.last) APPEND($$, cell); else ONE($$, cell);
        }
    ;

branch: IF expr body { MAKE($$, pnet_tree_branch(p, @$, $2, $3, (struct pnet_stmts){0})); }
    | IF expr body ELSE otherwise { MAKE($$, pnet_tree_branch(p, @$, $2, $3, $5)); }
    ;

otherwise: body
    | branch { ONE($$, $1); }
    ;

expr: pipe
    | IF expr THEN expr ELSE expr { MAKE($$, pnet_tree_if(p, @$, $2, $4, $6)); }
    ;

pipe: or
    | pipe ARROW stage { MAKE($$, pnet_tree_pipe(p, @$, $1, $3, NULL)); }
    | pipe ARROW plain_stage STAR count { MAKE($$, pnet_tree_pipe(p, @$, $1, $3, $5)); }
    ;

stage: plain_stage
    ;

plain_stage: NAME { MAKE($$, pnet_tree_call(p, @$, $1, @1, (struct pnet_args){0})); }
    | NAME LPAREN args RPAREN { MAKE($$, pnet_tree_call(p, @$, $1, @1, $3)); }
    ;

count: NUMBER { MAKE($$, pnet_tree_number(p, @1, $1)); }
    | base
    ;

or: and
    | or OR and { MAKE($$, pnet_tree_operation(p, @$, PNET_OP_OR, @2, $1, $3)); }
    ;

and: not
    | and AND not { MAKE($$, pnet_tree_operation(p, @$, PNET_OP_AND, @2, $1, $3)); }
    ;

not: comparison
    | NOT not { MAKE($$, pnet_tree_operation(p, @$, PNET_OP_NOT, @1, $2, NULL)); }
    ;

comparison: sum
    | sum compare sum { MAKE($$, pnet_tree_operation(p, @$, $2, @2, $1, $3)); }
    ;

compare: EQ { $$ = PNET_OP_EQ; }
    | NE { $$ = PNET_OP_NE; }
    | LT { $$ = PNET_OP_LT; }
    | LE { $$ = PNET_OP_LE; }
    | GT { $$ = PNET_OP_GT; }
    | GE { $$ = PNET_OP_GE; }
    ;

sum: product
    | sum add product { MAKE($$, pnet_tree_operation(p, @$, $2, @2, $1, $3)); }
    ;

add: PLUS { $$ = PNET_OP_ADD; }
    | MINUS { $$ = PNET_OP_SUB; }
    ;

product: unary
    | product multiply unary { MAKE($$, pnet_tree_operation(p, @$, $2, @2, $1, $3)); }
    ;

multiply: STAR { $$ = PNET_OP_MUL; }
    | SLASH { $$ = PNET_OP_DIV; }
    | PERCENT { $$ = PNET_OP_MOD; }
    ;

unary: operand
    | MINUS unary { MAKE($$, pnet_tree_operation(p, @$, PNET_OP_NEG, @1, $2, NULL)); }
    ;

operand: NUMBER { MAKE($$, pnet_tree_number(p, @1, $1)); }
    | STRING { MAKE($$, pnet_tree_string(p, @1, $1)); }
    | base
    ;

/* The expressions that an index or a field may follow. */
base: NAME { MAKE($$, pnet_tree_name(p, @1, $1)); }
    | NAME LPAREN args RPAREN { MAKE($$, pnet_tree_call(p, @$, $1, @1, $3)); }
    | LPAREN expr RPAREN { $$ = $2; $$->span = @$; }
    | LBRACKET list RBRACKET { MAKE($$, pnet_tree_list(p, @$, $2)); }
    | base LBRACKET expr RBRACKET { MAKE($$, pnet_tree_index(p, @$, $1, $3)); }
    | base DOT NAME { MAKE($$, pnet_tree_field(p, @$, $1, $3, @3)); }
    ;

args: %empty { $$ = (struct pnet_args){0}; }
    | arg_list
    | arg_list COMMA
    ;

arg_list: arg { ONE($$, $1); }
    | arg_list COMMA arg { $$ = $1; APPEND($$, $3); }
    ;

arg: expr { MAKE($$, pnet_tree_arg(p, NULL, @$, $1)); }
    | NAME ASSIGN expr { MAKE($$, pnet_tree_arg(p, $1, @1, $3)); }
    ;

list: %empty { $$ = (struct pnet_exprs){0}; }
    | list_items
    | list_items COMMA
    ;

list_items: expr
        {
            struct pnet_expr_cell *cell;
            MAKE(cell, pnet_tree_cell(p, $1));
            ONE($$, cell);
        }
    | list_items COMMA expr
        {
            struct pnet_expr_cell *cell;
            MAKE(cell, pnet_tree_cell(p, $3));
            $$ = $1;
            APPEND($$, cell);
        }
    ;

%%

/* Called with a token that fits nowhere; reports the tokens that would fit. */
static int yyreport_syntax_error(const yypcontext_t *context, struct pnet_parser *p)
{
    if (pnet_diags_full(p->all->diags)) {
        pnet_recover(p, 0);
        return 0;
    }
    yysymbol_kind_t symbols[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, symbols, YYNTOKENS);
    if (count < 0) return count;
    uint64_t expected = 0;
    for (int kind = TOKEN_END; kind <= TOKEN_DOT; kind++)
        for (int i = 0; i < count; i++)
            if (symbols[i] == YYTRANSLATE(kind)) expected |= (uint64_t)1 << (kind - TOKEN_END);
    pnet_recover(p, expected);
    return 0;
}
