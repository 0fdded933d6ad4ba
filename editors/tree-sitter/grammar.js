// The grammar of .pnet files for tree-sitter: that of lang/parser.y, rule by rule. Statements end where the next token cannot
// continue them; line ends mean nothing.

const list = rule => optional(seq(rule, repeat(seq(',', rule)), optional(',')));

// An operation of one strength: its operands are stronger, and it groups to the left.
const operation = (self, stronger, operators) =>
  seq(field('left', self), field('operator', operators), field('right', stronger));

module.exports = grammar({
  name: 'pnet',

  word: $ => $.name,

  extras: $ => [/\s/, $.comment, $.doc_comment],

  rules: {
    source_file: $ => seq(optional($.version), repeat($._item)),

    version: $ => seq('pnet', $.number),

    _item: $ => choice(
      $.include_item,
      $.param_item,
      $.const_item,
      $.loss_item,
      $.metric_item,
      $.input_item,
      $.block_item,
      $.net_item,
      $.assignment,
    ),

    include_item: $ => seq('include', field('path', $.string)),
    param_item: $ => seq('param', field('name', $.name), '=', field('value', $._expression)),
    const_item: $ => seq('const', field('name', $.name), '=', field('value', $._expression)),
    loss_item: $ => seq('loss', field('name', $.name), '=', field('value', $._expression)),
    metric_item: $ => seq('metric', field('name', $.name), '=', field('value', $._expression)),

    input_item: $ => seq('input', field('name', $.name),
      choice(seq('{', repeat($.field_declaration), '}'), seq(':', field('type', $.name)))),
    field_declaration: $ => seq(field('name', $.name), ':', field('type', $.name),
      optional(seq('[', field('size', $._expression), ']')),
      optional(seq('per', field('per', $.name)))),

    block_item: $ => seq('block', field('name', $.name), $.parameters, field('body', $.body)),
    net_item: $ => seq('net', field('name', $.name), $.parameters, field('body', $.body)),
    parameters: $ => seq('(', list($.parameter), ')'),
    parameter: $ => seq(field('name', $.name), optional(seq(':', field('type', $.name))),
      optional(seq('=', field('value', $._expression)))),

    body: $ => seq('{', repeat($._statement), '}'),
    _statement: $ => choice($.assignment, $.if_statement, $.for_statement, $.return_statement),
    assignment: $ => seq(field('name', $.name), repeat(seq('[', field('index', $._expression), ']')), '=',
      field('value', $._expression)),
    for_statement: $ => seq('for', field('name', $.name), '=', field('from', $._or), '..', field('to', $._or),
      field('body', $.body)),
    return_statement: $ => seq('return', field('value', $._expression)),
    if_statement: $ => seq('if', field('condition', $._expression), field('then', $.body),
      optional(seq('else', field('else', choice($.body, $.if_statement))))),

    _expression: $ => choice($._pipe, $.conditional),
    conditional: $ => seq('if', field('condition', $._expression), 'then', field('then', $._expression), 'else',
      field('else', $._expression)),

    _pipe: $ => choice($._or, $.pipe),
    pipe: $ => seq(field('value', $._pipe), '->', $.stage,
      optional(seq('*', field('count', choice($.number, $._base))))),
    stage: $ => seq(field('function', $.name), optional($.arguments)),

    _or: $ => choice($._and, alias($._or_operation, $.operation)),
    _or_operation: $ => operation($._or, $._and, 'or'),
    _and: $ => choice($._not, alias($._and_operation, $.operation)),
    _and_operation: $ => operation($._and, $._not, 'and'),
    _not: $ => choice($._comparison, alias($._not_operation, $.operation)),
    _not_operation: $ => seq(field('operator', 'not'), field('right', $._not)),
    _comparison: $ => choice($._sum, alias($._comparison_operation, $.operation)),
    _comparison_operation: $ => operation($._sum, $._sum, choice('==', '!=', '<', '<=', '>', '>=')),
    _sum: $ => choice($._product, alias($._sum_operation, $.operation)),
    _sum_operation: $ => operation($._sum, $._product, choice('+', '-')),
    _product: $ => choice($._unary, alias($._product_operation, $.operation)),
    _product_operation: $ => operation($._product, $._unary, choice('*', '/', '%')),
    _unary: $ => choice($._operand, alias($._minus, $.operation)),
    _minus: $ => seq(field('operator', '-'), field('right', $._unary)),

    _operand: $ => choice($.number, $.string, $._base),
    _base: $ => choice($.name, $.call, $.parenthesized, $.list, $.index, $.field),
    call: $ => seq(field('function', $.name), $.arguments),
    parenthesized: $ => seq('(', $._expression, ')'),
    list: $ => seq('[', list($._expression), ']'),
    index: $ => seq(field('value', $._base), '[', field('index', $._expression), ']'),
    field: $ => seq(field('value', $._base), '.', field('name', $.name)),

    arguments: $ => seq('(', list($.argument), ')'),
    argument: $ => choice(seq(field('name', $.name), '=', field('value', $._expression)),
      field('value', $._expression)),

    name: _ => /[A-Za-z_][A-Za-z0-9_]*/,
    number: _ => /[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?(mm|cm|km|m|deg|rad|%)?/,
    string: _ => /"([^"\\\n]|\\[^\n])*"/,
    doc_comment: _ => token(prec(1, /##([^#\n][^\n]*)?/)),
    comment: _ => token(/#[^\n]*/),
  },
});
