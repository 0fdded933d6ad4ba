# Completion for bash, from the lines of pnetc --help=table (compiler/cli/listing.c): awk -f bash.awk TABLE
BEGIN {
    FS = "\t"
    print "# Completion of pnetc for bash. Generated: the options are those of pnetc itself.\n"
}
$1 == "command" {
    command = $2
    n = split($2, part, " ")
    group = n == 2 ? part[1] : ""
    commands[group] = commands[group] " " part[n]
    options[command] = "--help"
    all[++count] = command
}
$1 == "word" {
    slot[command]++
    place = $3 == "many" ? "'[0-9]*" : slot[command] "'"
    values = values sprintf("    '%s %s) echo '%s %s' ;;\n", command, place, $4, $5)
}
$1 == "option" {
    options[command] = options[command] " --" $2 ($6 == "equals" ? " --" $2 "=" : "")
    if ($6 == "needed")
        values = values sprintf("    '%s --%s'%s) echo '%s %s' ;;\n", command, $2,
            $3 == "-" ? "" : " | '" command " -" $3 "'", $7, $8)
}
END {
    print "# What the value of an option is, or a word by its place: a kind, and names. Fails for options without a value.\n" \
        "_pnetc_value() {\n    case \"$1\" in"
    printf "%s    *) return 1 ;;\n    esac\n}\n\n", values
    print "_pnetc_options() {\n    case \"$1\" in"
    for (i = 1; i <= count; i++) printf "    '%s') echo '%s' ;;\n", all[i], options[all[i]]
    print "    '') echo '--help --version' ;;\n    esac\n}\n"
    print "_pnetc_commands() {\n    case \"$1\" in"
    for (i = 1; i <= count; i++)
        if (all[i] in commands) printf "    '%s') echo '%s' ;;\n", all[i], substr(commands[all[i]], 2)
    printf "    '') echo '%s' ;;\n    esac\n}\n", substr(commands[""], 2)
}
