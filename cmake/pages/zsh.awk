# Completion for zsh, from the lines of pnetc --help=table (compiler/cli/listing.c): awk -f zsh.awk TABLE
BEGIN {
    FS = "\t"
    print "#compdef pnetc\n# Completion of pnetc for zsh. Generated: the options are those of pnetc itself.\n"
}
# Inside of single quotes, where : and brackets end parts of a specification.
function quote(text) {
    gsub(/'/, "'\\''", text)
    gsub(/\\/, "\\\\", text)
    gsub(/:/, "\\:", text)
    gsub(/\[/, "\\[", text)
    gsub(/\]/, "\\]", text)
    return text
}
function action(kind, names) {
    if (kind == "words") return "(" names ")"
    if (kind == "list") return "_values -s , name " names
    if (kind == "folders") return "_files -/"
    if (kind == "none") return " "
    if (names == "") return "_files"
    gsub(/ /, "|", names)
    return "_files -g \"*.(#i)(" names ")(-.)\""
}
$1 == "command" {
    command = $2
    n = split($2, part, " ")
    group = n == 2 ? part[1] : ""
    listed[group] = listed[group] sprintf("        '%s:%s'\n", part[n], quote($3))
    all[++count] = command
    specs[command] = "'(- *)'{-h,--help}'[print a short description]'"
}
$1 == "word" {
    spec = ($3 == "many" ? "*" : "") ":" quote($2) ":" action($4, $5)
    specs[command] = specs[command] " \\\n        '" spec "'"
}
$1 == "option" {
    value = $6 == "none" ? "" : ($6 == "equals" ? "::" : ":") quote($4) ":" action($7, $8)
    sign = $6 == "none" ? "" : $6 == "equals" ? "=-" : "="
    text = "[" quote($9) "]" value "'"
    if ($3 == "-")
        spec = "'" ($5 == "many" ? "*" : "") "--" $2 sign text
    else if ($5 == "many")
        spec = "'*'{-" $3 ",--" $2 sign "}'" text
    else
        spec = "'(-" $3 " --" $2 ")'{-" $3 ",--" $2 sign "}'" text
    specs[command] = specs[command] " \\\n        " spec
}
function print_group(name,  i, under, title) {
    under = name
    gsub(/ /, "_", under)
    printf "_pnetc%s() {\n    local curcontext=$curcontext state line\n    local -a commands\n    commands=(\n%s    )\n", \
        under == "" ? "" : "_" under, listed[name]
    printf "    _arguments -C '(- *)'{-h,--help}'[print a short description]' %s':command:->command' '*::argument:->argument'\n", \
        name == "" ? "'(- *)--version[print the version]' " : ""
    print "    case $state in\n    command) _describe -t commands command commands ;;\n    argument)"
    print "        curcontext=${curcontext%:*}-$words[1]:\n        case $words[1] in"
    for (i = 1; i <= count; i++) {
        if (name == "" ? all[i] ~ / / : index(all[i], name " ") != 1) continue
        title = all[i]
        gsub(/ /, "_", title)
        printf "        %s) _pnetc_%s ;;\n", name == "" ? all[i] : substr(all[i], length(name) + 2), title
    }
    print "        esac\n        ;;\n    esac\n}\n"
}
END {
    for (i = 1; i <= count; i++) {
        title = all[i]
        gsub(/ /, "_", title)
        if (all[i] in listed)
            print_group(all[i])
        else
            printf "_pnetc_%s() {\n    _arguments -S %s\n}\n\n", title, specs[all[i]]
    }
    print_group("")
    print "_pnetc \"$@\""
}
