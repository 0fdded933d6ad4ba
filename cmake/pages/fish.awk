# Completion for fish, from the lines of pnetc --help=table (compiler/cli/listing.c): awk -f fish.awk TABLE
BEGIN {
    FS = "\t"
    print "# Completion of pnetc for fish. Generated: the options are those of pnetc itself.\n"
}
function quote(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/'/, "\\'", text)
    return "'" text "'"
}
function values(kind, names) {
    if (kind == "words") return " -x -a " quote(names)
    if (kind == "list") return " -x -a " quote("(__pnetc_list " names ")")
    if (kind == "folders") return " -x -a '(__fish_complete_directories)'"
    if (kind == "none") return " -x"
    return names == "" ? " -r -F" : " -x -a " quote("(__pnetc_files " names ")")
}
function add(condition, rest) {
    line = "complete -c pnetc -n " quote("__pnetc_in" (condition == "" ? "" : " " condition)) rest "\n"
    if (!(line in seen)) lines = lines line
    seen[line] = 1
}
$1 == "command" {
    command = $2
    n = split($2, part, " ")
    if (n == 2 && !(part[1] in group)) {
        group[part[1]] = 1
        groups = groups " " part[1]
    }
    add(n == 2 ? part[1] : "", " -a " part[n] " -d " quote($3))
    add(command, " -s h -l help -d 'print a short description'")
}
$1 == "word" { add(command, values($4, $5)) }
$1 == "option" {
    add(command, ($3 == "-" ? "" : " -s " $3) " -l " $2 ($6 == "needed" ? values($7, $8) : "") " -d " quote($9))
}
END {
    print "# Tells whether the words before the cursor have that command, which may be none."
    print "function __pnetc_in\n    set -l words (commandline -opc)\n    set -l given $words[2]"
    print "    contains -- \"$given\"" groups "; and test (count $words) -gt 2; and set given $words[2..3]"
    print "    test \"$given\" = \"$argv\"\nend\n"
    print "# Folders, and files whose names end as one of the words do."
    print "function __pnetc_files\n    for file in (__fish_complete_path (commandline -ct))"
    print "        string match -qr -- '/(\\t.*)?$' $file; and echo $file; and continue"
    print "        for ending in $argv\n            string match -qir -- '\\.'$ending'(\\t.*)?$' $file; and echo $file"
    print "        end\n    end\nend\n"
    print "# Some of the words, with commas between."
    print "function __pnetc_list\n    set -l before (string replace -r -- '[^,]*$' '' (commandline -ct))"
    print "    printf '%s\\n' $before$argv\nend\n"
    print "complete -c pnetc -f"
    print "complete -c pnetc -n __pnetc_in -l version -d 'print the version'"
    print "complete -c pnetc -n __pnetc_in -s h -l help -d 'print a short description'"
    printf "%s", lines
}
