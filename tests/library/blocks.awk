# The C of a page, of the named kinds of blocks:  awk -v kinds='c|c cuda' -f tests/library/blocks.awk PAGE.md
# Kinds are what follows ``` on their first lines. Blocks of other kinds than KNOWN and indented code are errors, because nothing
# would run them. Messages of a compiler name lines of the page. Behind each block for a GPU stands COMPARE_1, COMPARE_2, and so on,
# for what compares the numbers that it computes (tests/cuda/test_cuda_library_page.c).
BEGIN { KNOWN = "c|c cuda|c cuda functions|sh|text" }
function has(list, kind) { return index("|" list "|", "|" kind "|") > 0 }
function wrong(line, what)
{
    printf "%s:%d: %s\n", FILENAME, line, what >"/dev/stderr"
    bad = 1
    exit 1
}
/^```/ && !inside {
    kind = substr($0, 4)
    inside = 1
    first = FNR
    if (!has(KNOWN, kind)) wrong(FNR, "a block of the kind \"" kind "\": nothing runs it")
    wanted = has(kinds, kind)
    if (wanted) printf "#line %d \"%s\"\n", FNR + 1, FILENAME
    next
}
/^```/ {
    inside = 0
    if (wanted && kind == "c cuda") printf "COMPARE_%d\n", ++count
    before = $0
    next
}
inside {
    if (wanted) print
    next
}
/^    / && before == "" { wrong(FNR, "indented code: nothing runs it") }
{ before = $0 }
END { if (inside && !bad) wrong(first, "the block does not end") }
