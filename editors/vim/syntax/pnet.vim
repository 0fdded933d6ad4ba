" Vim syntax file. Language: pnet (.pnet)
if exists('b:current_syntax')
  finish
endif

syntax keyword pnetDeclaration pnet include param const input block net loss metric per
syntax keyword pnetStatement for return if then else
syntax keyword pnetOperatorWord and or not
syntax keyword pnetConstant yes no sample
syntax keyword pnetSpecial in out
syntax keyword pnetType position feature class pose point cloud

syntax keyword pnetLayer conv linear bn instancenorm groupnorm layernorm l2norm relu leaky_relu gelu sigmoid swiglu
syntax keyword pnetLayer softmax attend dropout drop_path add mul scale cat ones split lattice pool upsample
syntax keyword pnetLayer interpolate expand cross_entropy focal lovasz_softmax dice mse huber l1 chamfer dcd hypercd
syntax keyword pnetLayer infocd apml emd sinkhorn hardest_contrastive circle accuracy top_k_accuracy mean_accuracy
syntax keyword pnetLayer precision recall f1 iou miou confusion feature_match_recall registration completion
syntax keyword pnetLayer apml_support
syntax keyword pnetFunction grid points chunks level width len matches min max floor ceil round error
syntax match pnetCall "\<\h\w*\ze("
syntax match pnetStage "\%(->\s*\)\@<=\h\w*"
syntax match pnetArgument "[(,]\s*\zs\h\w*\ze\s*==\@!"

syntax match pnetNumber "\<\d\+\%(\.\d\+\)\?\%([eE][-+]\?\d\+\)\?\%(mm\|cm\|km\|m\|deg\|rad\)\?\>"
syntax match pnetNumber "\<\d\+\%(\.\d\+\)\?\%([eE][-+]\?\d\+\)\?%"
syntax match pnetOperator "->\|\.\.\|[-+*/%<>=!]=\?"
syntax region pnetString start=+"+ skip=+\\.+ end=+"+ end=+$+
syntax match pnetComment "#.*$" contains=@Spell
syntax match pnetDocComment "##\%([^#].*\)\?$" contains=@Spell

highlight default link pnetDeclaration Keyword
highlight default link pnetStatement Statement
highlight default link pnetOperatorWord Operator
highlight default link pnetConstant Constant
highlight default link pnetSpecial Special
highlight default link pnetType Type
highlight default link pnetLayer Function
highlight default link pnetFunction Function
highlight default link pnetCall Function
highlight default link pnetStage Function
highlight default link pnetArgument Identifier
highlight default link pnetNumber Number
highlight default link pnetOperator Operator
highlight default link pnetString String
highlight default link pnetComment Comment
highlight default link pnetDocComment SpecialComment

let b:current_syntax = 'pnet'
