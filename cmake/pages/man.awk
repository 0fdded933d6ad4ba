# Pages of the manual, one a command, from the lines of pnetc --help=table (compiler/cli/listing.c).
# awk -v folder=FOLDER -v date=2026-01-31 -f man.awk TABLE
BEGIN { FS = "\t" }
function roff(text) { # as it is, in roff
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}
# Running text in roff, in lines of at most 80 bytes; no line of the source is told from another.
function fill(text,  n, i, word, line, all) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + length(word[i]) > 70) {
            all = all roff(line) "\n"
            line = ""
        }
        line = line (line == "" ? "" : " ") word[i]
    }
    return all roff(line) "\n"
}
function open_page(name, title) {
    page = folder "/" name ".1"
    # the C locale's capitals: a title is ASCII
    printf ".TH %s 1 \"%s\" \"pnet %s\" \"User Commands\"\n.SH NAME\n%s \\- %s\n", roff(toupper(name)), date, version, roff(name), \
        roff(title) >page
}
# The parts stand in another order in the page than in the table.
function finish_page() {
    if (!page) return
    printf ".SH SYNOPSIS\n.B %s\n", roff(synopsis) >page
    if (words) printf ".SH DESCRIPTION\n%s", words >page
    if (group) printf ".SH COMMANDS\n%s", group >page
    printf ".SH OPTIONS\n%s.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint a short description\n", options >page
    if (examples) printf ".SH EXAMPLES\n.nf\n%s.fi\n", examples >page
    printf ".SH EXIT STATUS\n%s", codes >page
    printf ".SH SEE ALSO\n" >page
    printf "%s", see ? see : ".BR pnetc (1)\n" >page
    close(page)
    page = words = group = options = examples = see = ""
}
$1 == "version" { version = $2 }
$1 == "exit" { codes = codes ".TP\n.B " roff($2) "\n" fill($3) }
$1 == "command" {
    count++
    name[count] = $2
    summary[count] = $3
}
$1 != "version" && $1 != "exit" {
    lines++
    line[lines] = $0
    of[lines] = count
}
function list_commands(prefix,  i, rest, text, file) {
    for (i = 1; i <= count; i++) {
        if (prefix != "" && index(name[i], prefix " ") != 1) continue
        rest = prefix == "" ? name[i] : substr(name[i], length(prefix) + 2)
        if (rest ~ / /) continue
        file = "pnetc-" name[i]
        gsub(/ /, "-", file)
        text = text ".TP\n.BR " roff(file) " (1)\n" fill(summary[i])
    }
    return text
}
END {
    for (i = 1; i <= lines; i++) {
        $0 = line[i]
        if ($1 == "command") {
            finish_page()
            file = "pnetc-" $2
            gsub(/ /, "-", file)
            synopsis = "pnetc " $2
            open_page(file, $3)
            group = list_commands($2)
            if (group) synopsis = synopsis " COMMAND [ARGUMENTS]"
        } else if ($1 == "usage") {
            synopsis = $2
        } else if ($1 == "text") {
            words = words fill($2)
        } else if ($1 == "example") {
            examples = examples roff($2) "\n"
        } else if ($1 == "option") {
            long = "\\fB\\-\\-" roff($2) "\\fR"
            if ($4) long = long ($6 == "equals" ? "" : " ") "\\fI" roff($4) "\\fR"
            options = options ".TP\n" ($3 == "-" ? "" : "\\fB\\-" $3 "\\fR, ") long "\n" fill($9)
            if ($7 == "words" && !spelled($8, $9)) options = options fill("(" $8 ")")
        }
    }
    finish_page()
    open_page("pnetc", "compile and run networks on point clouds")
    synopsis = "pnetc COMMAND [ARGUMENTS]"
    words = ".B pnetc\n" \
        "checks, plans, trains and runs networks on point clouds. A\n.I .pnet\nfile describes the network, a YAML file the training.\n"
    group = list_commands("")
    options = ".TP\n\\fB\\-\\-version\\fR\nprint the version\n"
    see = ""
    for (i = 1; i <= count; i++) {
        file = "pnetc-" name[i]
        gsub(/ /, "-", file)
        see = see ".BR " roff(file) " (1)" (i < count ? ",\n" : "\n")
    }
    finish_page()
}
# Tells whether the help names all words.
function spelled(names, help,  n, i, all) {
    n = split(names, all, " ")
    for (i = 1; i <= n; i++)
        if (index(help, all[i]) == 0) return 0
    return 1
}
