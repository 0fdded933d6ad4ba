# The functions of C and CUDA sources: a line "FILE LINE NAME LINES" for each, methods of structs too. A function is a block
# behind a head with parentheses, at file scope or in a struct, class, union, namespace or extern block.
FNR == 1 {
    head = ""
    inside = comment = continued = 0
}
{
    s = $0
    gsub(/\\./, "", s)
    gsub(/"[^"]*"/, "", s)
    gsub(/'[^']'/, "", s)
    if (!inside && (continued || s ~ /^[ \t]*#/)) { # of the preprocessor
        continued = $0 ~ /\\$/
        next
    }
    s = without_comments(s)
    n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (inside) {
            if (c == "{") inside++
            if (c != "}" || --inside) continue
            if (name != "") print FILENAME, begin, name, FNR - begin + 1
            head = ""
        } else if (c == "{") {
            name = head ~ /\)/ && head !~ /=/ ? name_of(head) : ""
            if (name != "" || !scope(head)) inside = 1
            else head = ""
        } else if (c == "}" || c == ";") {
            head = ""
        } else if (head != "" || c !~ /[ \t]/) {
            if (head == "") begin = FNR
            head = head c
        }
    }
    if (head != "") head = head " "
}

function without_comments(s, at, end) {
    sub(/\/\/.*/, "", s)
    for (;;) {
        if (comment) {
            end = index(s, "*/")
            if (!end) return ""
            s = substr(s, end + 2)
            comment = 0
        }
        at = index(s, "/*")
        if (!at) return s
        end = index(substr(s, at + 2), "*/")
        if (!end) {
            comment = 1
            return substr(s, 1, at - 1)
        }
        s = substr(s, 1, at - 1) " " substr(s, at + end + 3)
    }
}

function scope(head) { return head ~ /(^|[^A-Za-z_])(struct|class|union|namespace|extern)([^A-Za-z_]|$)/ }

# What stands before the first parenthesis that belongs to a parameter list: attributes such as __launch_bounds__(..) do not.
function name_of(head) {
    gsub(/__(launch_bounds|attribute|declspec|align)_*[ \t]*\([^()]*(\([^()]*\)[^()]*)*\)/, "", head)
    if (!match(head, /[A-Za-z_~][A-Za-z_0-9]*[ \t]*\(/)) return head ~ /operator/ ? "operator" : ""
    head = substr(head, RSTART, RLENGTH - 1)
    sub(/[ \t]+$/, "", head)
    return head
}
