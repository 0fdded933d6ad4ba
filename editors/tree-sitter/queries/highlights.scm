; Highlighting of pnet by the grammar beside. Later patterns win.

(name) @variable
(number) @number
(string) @string
(comment) @comment
(doc_comment) @comment.documentation

((name) @constant.builtin
  (#any-of? @constant.builtin "yes" "no" "sample"))
((name) @variable.builtin
  (#any-of? @variable.builtin "in" "out"))

(field_declaration name: (name) @property)
(field_declaration type: (name) @type)
(field_declaration per: (name) @type)
(input_item type: (name) @type)
(parameter name: (name) @variable.parameter)
(parameter type: (name) @type)
(field name: (name) @property)
(argument name: (name) @variable.parameter)

(block_item name: (name) @function)
(net_item name: (name) @function)
(call function: (name) @function.call)
(stage function: (name) @function.call)
((call function: (name) @function.builtin)
  (#any-of? @function.builtin
    "grid" "points" "chunks" "level" "width" "len" "matches" "min" "max" "floor" "ceil" "round" "error"))
((call function: (name) @function.builtin)
  (#any-of? @function.builtin
    "conv" "linear" "bn" "instancenorm" "groupnorm" "layernorm" "l2norm" "relu" "leaky_relu" "gelu" "sigmoid" "swiglu"
    "softmax" "attend" "dropout" "drop_path" "add" "mul" "scale" "cat" "ones" "split" "lattice" "pool" "upsample"
    "interpolate" "expand" "cross_entropy" "focal" "lovasz_softmax" "dice" "mse" "huber" "l1" "chamfer" "dcd"
    "hypercd" "infocd" "apml" "emd" "sinkhorn" "hardest_contrastive" "circle" "accuracy" "top_k_accuracy"
    "mean_accuracy" "precision" "recall" "f1" "iou" "miou" "confusion" "feature_match_recall" "registration"
    "completion" "apml_support"))
((stage function: (name) @function.builtin)
  (#any-of? @function.builtin
    "conv" "linear" "bn" "instancenorm" "groupnorm" "layernorm" "l2norm" "relu" "leaky_relu" "gelu" "sigmoid" "swiglu"
    "softmax" "attend" "dropout" "drop_path" "add" "mul" "scale" "cat" "ones" "split" "lattice" "pool" "upsample"
    "interpolate" "expand" "cross_entropy" "focal" "lovasz_softmax" "dice" "mse" "huber" "l1" "chamfer" "dcd"
    "hypercd" "infocd" "apml" "emd" "sinkhorn" "hardest_contrastive" "circle" "accuracy" "top_k_accuracy"
    "mean_accuracy" "precision" "recall" "f1" "iou" "miou" "confusion" "feature_match_recall" "registration"
    "completion" "apml_support"))

[
  "pnet"
  "include"
  "param"
  "const"
  "input"
  "block"
  "net"
  "loss"
  "metric"
  "per"
] @keyword

["for" "if" "then" "else" "return"] @keyword.control
["and" "or" "not"] @keyword.operator

["->" ".." "=" "==" "!=" "<" "<=" ">" ">=" "+" "-" "*" "/" "%"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" "."] @punctuation.delimiter
