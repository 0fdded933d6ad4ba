# The tables of bench/registration.sh, in Markdown, from its run folders CELL-MODE-sSEED: TEST.jsonl has a line for each pair
# (pnetc eval --each), TEST.json and train.json are what eval and train print, metrics.jsonl has a line for each step. Called with
# -v test=NAME -v table=WHAT and these files, train.json before metrics.jsonl; WHAT is
#   values     of the test, a row for each cell and mode; -v columns="recall rre" names those that are wanted
#   against    how far the modes' means lie from native's in these columns, with the spread of that over seeds (the root of the
#              sum of both variances; bold where the means are farther apart) and, in brackets, p of the pairs
#   pairs      the modes against native, pair by pair
#   training   what the networks cost, whatever the test
#   strata     success by the number of right correspondences, for two modes; -v by=overlap (%) or by=turn (degrees): by how
#              hard a pair is
# -v head=no leaves out the head, so that a table goes on.
#
# Every value is the mean over the seeds, with the standard deviation between them. Modes are compared with native pair by
# pair, on the mean of a pair over the seeds, so that a pair counts once however many seeds there are:
#   errors, shares, loss     Wilcoxon's signed-rank test (1945), two-sided, zeros left out, normal approximation with the
#                            correction for ties: z = (W - n(n+1)/4) / sqrt(n(n+1)(2n+1)/24 - sum(t^3 - t)/48)
#   success                  the exact sign test on pairs that succeed under more seeds in one mode than in the other; with
#                            one seed that is McNemar's test (1947) in its exact form
# Errors of right correspondences and of fits to them are means of the pairs that have a fit; a pair that has none under any seed
# of one of the two modes is not compared. Were the errors of right ones independent, a fit's would go as their root mean square
# distance over the root of their number: excess_rre (in radians) and excess_rte are the fit's errors over that. How large they
# are depends on the lie of the points in a pair too; of two modes on one pair the one with the lower has right ones that err less
# alike or lie better apart. Which of the two it is: excess_shift, how far the fit moves the middle of right ones over the same, is
# 1 in root mean square where errors are independent, wherever the points lie; excess_turn, excess_rre times how well apart they
# lie for a rotation (`spread`), is so where errors go in all directions alike as well. Means are lower, 0.92 at most.
#
# Strata put each pair under each seed into a group by its right correspondences, at -v bounds="5 10 20 40". Overlap and turn
# are the pair's own, whatever the network: it is in one group under all seeds of both modes, by the mean of what they say. If recall hung on
# their number alone, both modes would have the same recall in a group, and each would have the other's recall had it the other's
# numbers: the mean of its recalls in the groups, weighed by how many of the other's pairs are there (direct standardisation; "-"
# where a mode has no pair in a group that it needs). Behind a difference stands its standard error over the pairs, from leaving
# out each of them in turn with all its seeds (the jackknife).

function number(text, key,    at, rest) {
    at = index(text, "\"" key "\":")
    if (!at) return ""
    rest = substr(text, at + length(key) + 3)
    sub(/[,}].*/, "", rest)
    return rest == "null" ? "" : rest + 0
}

# The upper tail of the normal distribution: a series near 0, a continued fraction beyond (Abramowitz and Stegun 26.2.10, 14).
function tail(z,    term, sum, k, fraction) {
    if (z < 3) {
        term = sum = z
        for (k = 1; k < 60; k++) { term *= -z * z / (2 * k); sum += term / (2 * k + 1) }
        return 0.5 - sum / 2.506628274631
    }
    fraction = 0
    for (k = 60; k >= 1; k--) fraction = k / (z + fraction)
    return exp(-z * z / 2) / 2.506628274631 / (z + fraction)
}

# Sorts d[1..n] by size alone.
function sort_by_size(d, n,    i, k, x) {
    for (i = 2; i <= n; i++) {
        x = d[i]
        for (k = i - 1; k >= 1 && size(d[k]) > size(x); k--) d[k + 1] = d[k]
        d[k + 1] = x
    }
}

function size(x) { return x < 0 ? -x : x }

# Two-sided p of the differences d[1..n], of which it leaves out zeros.
function wilcoxon(d, n,    i, k, m, w, ties, spread, z) {
    m = 0
    for (i = 1; i <= n; i++) if (d[i] != 0) d[++m] = d[i]
    if (!m) return 1
    sort_by_size(d, m)
    w = ties = 0
    for (i = 1; i <= m; i = k) {
        for (k = i; k <= m && size(d[k]) == size(d[i]);) k++
        ties += (k - i) ^ 3 - (k - i)
        for (z = i; z < k; z++) if (d[z] > 0) w += (i + k - 1) / 2
    }
    spread = m * (m + 1) * (2 * m + 1) / 24 - ties / 48
    z = size(w - m * (m + 1) / 4) / sqrt(spread)
    return 2 * tail(z)
}

# Two-sided p of b against c heads and tails.
function sign_test(b, c,    n, k, least, term, sum) {
    n = b + c
    least = b < c ? b : c
    term = exp(-n * log(2))
    for (k = 0; k <= least; k++) {
        sum += term
        term *= (n - k) / (k + 1)
    }
    return 2 * sum > 1 ? 1 : 2 * sum
}

function median(d, n,    i, k, x) {
    for (i = 2; i <= n; i++) {
        x = d[i]
        for (k = i - 1; k >= 1 && d[k] > x; k--) d[k + 1] = d[k]
        d[k + 1] = x
    }
    return n % 2 ? d[(n + 1) / 2] : (d[n / 2] + d[n / 2 + 1]) / 2
}

# Mean and standard deviation of `what` over the seeds of a cell and mode, in `mean` and `spread`; the number of seeds.
function statistics(cell, mode, what,    s, n, x, sum, squares) {
    n = sum = squares = 0
    for (s in seeds)
        if ((cell, mode, s, what) in value) {
            x = value[cell, mode, s, what]
            n++; sum += x; squares += x * x
        }
    mean = n ? sum / n : 0
    x = n > 1 ? (squares - n * mean * mean) / (n - 1) : 0
    spread = sqrt(x > 0 ? x : 0)
    return n
}

# "mean ± spread" over the seeds, each times `factor`.
function over_seeds(cell, mode, what, factor, digits,    n) {
    n = statistics(cell, mode, what)
    if (!n) return "-"
    return sprintf("%.*f", digits, factor * mean) (n > 1 ? sprintf(" ± %.*f", digits, factor * spread) : "")
}

# The same of what a mode has more than native; bold where that is beyond its spread.
function beyond_seeds(cell, mode, what, factor, digits,    n, more, wide, text) {
    n = statistics(cell, "native", what)
    more = -mean; wide = spread * spread
    if (!n || !statistics(cell, mode, what)) return "-"
    more += mean; wide = sqrt(wide + spread * spread)
    text = sprintf("%+.*f ± %.*f", digits, factor * more, digits, factor * wide)
    return size(more) > wide ? "**" text "**" : text
}

function p_text(p) { return p < 1e-6 ? "< 1e-6" : p < 0.001 ? sprintf("%.0e", p) : sprintf("%.3f", p) }

# A value that not every pair has, of the pair and of the run.
function note(what, x) {
    if (x == "") return
    of_pair[at, what] += x
    of_pair[at, what, "n"]++
    sum[run, what] += x
    counted[run, what]++
}

FNR == 1 {
    count = split(FILENAME, part, "/")
    file = part[count]
    split(part[count - 1], name, "-")
    cell = name[1]; mode = name[2]; seed = name[3]
    if (!(cell in cells)) { cells[cell]; cell_list[++cell_count] = cell }
    if (!(mode in modes)) { modes[mode]; mode_list[++mode_count] = mode }
    seeds[seed]
    run = cell SUBSEP mode SUBSEP seed
}

file == test ".jsonl" {
    pair = FNR
    rre = number($0, "rre_all_deg"); rte = number($0, "rte_all_m")
    good = number($0, "recall"); ratio = number($0, "inlier_ratio")
    rmse = number($0, "info_rmse_m")
    loss = number($0, "loss")
    matches = number($0, "matches")
    at = cell SUBSEP mode SUBSEP pair
    of_pair[at, "seeds"]++
    of_pair[at, "rre"] += rre; of_pair[at, "rte"] += rte; of_pair[at, "ratio"] += ratio; of_pair[at, "good"] += good
    of_pair[at, "loss"] += loss; of_pair[at, "matches"] += matches; of_pair[at, "right"] += matches * ratio
    right = int(matches * ratio + 0.5)
    if (by == "right") stratum[at, seed] = group_of(right)
    success[at, seed] = good
    if (by != "right") {
        of_level[cell, pair] += number($0, by == "turn" ? "turn_deg" : "overlap") * (by == "turn" ? 1 : 100)
        of_level[cell, pair, "n"]++
    }
    note("distinct", number($0, "distinct"))
    note("shared", number($0, "shared"))
    note("right_rms", number($0, "right_rms_m"))
    note("fit_rre", number($0, "fit_rre_deg"))
    note("fit_rte", number($0, "fit_rte_m"))
    apart = number($0, "right_rms_m"); lie = number($0, "right_spread_m"); shift = number($0, "fit_shift_m")
    note("spread", lie)
    note("fit_shift", shift)
    if (apart > 0) {
        apart /= sqrt(matches * ratio)
        turn = number($0, "fit_rre_deg") * 3.14159265358979 / 180 / apart
        note("excess_rre", turn)
        note("excess_rte", number($0, "fit_rte_m") / apart)
        if (shift != "") note("excess_shift", shift / apart)
        if (lie != "") note("excess_turn", turn * lie)
    }
    if (pair > pairs) pairs = pair
    lines[run]++
    sum[run, "rre_all"] += rre; sum[run, "rte_all"] += rte; sum[run, "ratio"] += ratio; sum[run, "good"] += good
    sum[run, "strict"] += number($0, "strict_recall")
    sum[run, "matched"] += ratio > 0.05
    if (matches != "") { any_matches = 1; sum[run, "matches"] += matches; sum[run, "right"] += matches * ratio }
    if (good) { sum[run, "rre_good"] += rre; sum[run, "rte_good"] += rte }
    if (rmse != "") { any_info = 1; sum[run, "info"] += rmse < 0.2 }
}

file == "train.json" && number($0, "steps") > 0 {
    value[run, "train_ms"] = 1000 * number($0, "seconds") / number($0, "steps")
    value[run, "train_bytes"] = number($0, "peak_bytes")
}

# train.json counts the steps since the last time the training was resumed; these are all.
file == "metrics.jsonl" && number($0, "step") > 0 {
    steps[run] = number($0, "step")
    loss_of[run, steps[run]] = number($0, "loss")
}

file == test ".json" {
    value[run, "eval_bytes"] = number($0, "peak_bytes")
    value[run, "test_loss"] = number($0, "loss")
}

# The mean loss of the last tenth of the steps.
function late_loss(r,    i, n, total) {
    for (i = steps[r]; i > 0.9 * steps[r]; i--) if ((r, i) in loss_of) { n++; total += loss_of[r, i] }
    return total / n
}

function finish_runs(    r, n) {
    for (r in counted) value[r] = sum[r] / counted[r]
    for (r in lines) {
        n = lines[r]
        value[r, "recall"] = sum[r, "good"] / n
        value[r, "strict"] = sum[r, "strict"] / n
        value[r, "fmr"] = sum[r, "matched"] / n
        value[r, "ratio"] = sum[r, "ratio"] / n
        value[r, "rre_all"] = sum[r, "rre_all"] / n
        value[r, "rte_all"] = sum[r, "rte_all"] / n
        if (steps[r]) value[r, "train_loss"] = late_loss(r)
        if (any_matches) { value[r, "matches"] = sum[r, "matches"] / n; value[r, "right"] = sum[r, "right"] / n }
        if (any_info) value[r, "info"] = sum[r, "info"] / n
        if (sum[r, "good"]) {
            value[r, "rre_good"] = sum[r, "rre_good"] / sum[r, "good"]
            value[r, "rte_good"] = sum[r, "rte_good"] / sum[r, "good"]
        }
    }
}

# A column is a name, a title, the value, its factor and digits.
function column(name, title, what, factor, digits) {
    column_list[++column_count] = name
    titles[name] = title; whats[name] = what; factors[name] = factor; digits_of[name] = digits
}

function test_columns() {
    column("recall", "recall, %", "recall", 100, 1)
    column("strict", "strict, %", "strict", 100, 1)
    column("info", "RR, %", "info", 100, 1)
    column("rre", "RRE, deg", "rre_good", 1, 2)
    column("rte", "RTE, cm", "rte_good", 100, 1)
    column("rre_all", "RRE of all", "rre_all", 1, 2)
    column("rte_all", "RTE of all", "rte_all", 100, 1)
    column("ratio", "inlier ratio, %", "ratio", 100, 1)
    column("fmr", "FMR, %", "fmr", 100, 1)
    column("loss", "loss", "test_loss", 1, 3)
    column("matches", "matches", "matches", 1, 0)
    column("right", "right ones", "right", 1, 1)
    column("distinct", "distinct, %", "distinct", 100, 1)
    column("shared", "neighbours share, %", "shared", 100, 1)
    column("right_rms", "right ones apart, cm", "right_rms", 100, 2)
    column("fit_rre", "RRE of the fit, deg", "fit_rre", 1, 2)
    column("fit_rte", "RTE of the fit, cm", "fit_rte", 100, 1)
    column("excess_rre", "excess of its RRE, 1/m", "excess_rre", 1, 2)
    column("excess_rte", "excess of its RTE", "excess_rte", 1, 2)
    column("spread", "spread of right ones, cm", "spread", 100, 1)
    column("fit_shift", "shift of the fit, cm", "fit_shift", 100, 2)
    column("excess_shift", "excess of its shift", "excess_shift", 1, 2)
    column("excess_turn", "excess of its turn", "excess_turn", 1, 2)
}

function training_columns() {
    column("training_loss", "loss of the last tenth", "train_loss", 1, 3)
    column("step", "step, ms", "train_ms", 1, 0)
    column("training", "training, MiB", "train_bytes", 1 / 1048576, 0)
    column("inference", "inference, MiB", "eval_bytes", 1 / 1048576, 0)
}

# Leaves the columns that are asked for, in that order.
function select_columns(names,    k, n, list) {
    n = split(names, list, " ")
    if (!n) return
    for (k = 1; k <= n; k++) {
        if (!(list[k] in titles)) { print "registration_table.awk: no column " list[k] >"/dev/stderr"; exit 2 }
        column_list[k] = list[k]
    }
    column_count = n
}

function print_values(first,    c, m, k, cell, mode, name) {
    if (head != "no") {
        printf "|%s cell | mode |", first == "" ? "" : " test |"
        for (k = 1; k <= column_count; k++) printf " %s |", titles[column_list[k]]
        printf "\n|---|---|%s", first == "" ? "" : "---|"
        for (k = 1; k <= column_count; k++) printf "---|"
        print ""
    }
    for (c = 1; c <= cell_count; c++)
        for (m = 1; m <= mode_count; m++) {
            cell = cell_list[c]; mode = mode_list[m]
            if (!((cell, mode, 1, "seeds") in of_pair)) continue
            printf "|%s %s | %s |", first == "" ? "" : " " first " |", cell, mode
            for (k = 1; k <= column_count; k++) {
                name = column_list[k]
                printf " %s |", over_seeds(cell, mode, whats[name], factors[name], digits_of[name])
            }
            print ""
        }
}

# Mean of pair p over the seeds, over those that have the value where not all have; whether there is one.
function mean_of(cell, mode, p, what) {
    if ((cell, mode, p, what, "n") in of_pair) return of_pair[cell, mode, p, what] / of_pair[cell, mode, p, what, "n"]
    return of_pair[cell, mode, p, what] / of_pair[cell, mode, p, "seeds"]
}

function has(cell, mode, p, what) { return (cell, mode, p, what) in of_pair }

# Differences of a mode from native in d[1..n]; pairs that only one of them has count for neither.
function differences(cell, mode, what, d,    p, n) {
    n = 0
    for (p = 1; p <= pairs; p++)
        if (has(cell, mode, p, what) && has(cell, "native", p, what))
            d[++n] = mean_of(cell, mode, p, what) - mean_of(cell, "native", p, what)
    return n
}

function compared(cell, mode, what, factor, digits,    d, n, middle, p) {
    n = differences(cell, mode, what, d)
    p = wilcoxon(d, n)
    n = differences(cell, mode, what, d)
    middle = median(d, n)
    return sprintf("%+.*f | %s", digits, factor * middle, p_text(p))
}

# p of a mode against native in a column of the tables, in brackets; nothing for columns that are not tested.
function p_of(cell, mode, name,    d, n, k, b, w) {
    if (name == "recall") {
        n = differences(cell, mode, "good", d)
        for (k = 1; k <= n; k++) { b += d[k] < 0; w += d[k] > 0 }
        return " (" p_text(sign_test(b, w)) ")"
    }
    sub(/_all$/, "", name)
    if (name !~ /^(rre|rte|ratio|loss|matches|right|distinct|shared|right_rms|(fit|excess)_(r[rt]e|shift)|spread|excess_turn)$/) return ""
    n = differences(cell, mode, name, d)
    if (!n) return ""
    return " (" p_text(wilcoxon(d, n)) ")"
}

function print_against(    c, m, k, cell, mode, name) {
    if (head != "no") {
        printf "| test | cell | mode against native |"
        for (k = 1; k <= column_count; k++) printf " %s |", titles[column_list[k]]
        printf "\n|---|---|---|"
        for (k = 1; k <= column_count; k++) printf "---|"
        print ""
    }
    for (c = 1; c <= cell_count; c++)
        for (m = 1; m <= mode_count; m++) {
            cell = cell_list[c]; mode = mode_list[m]
            if (mode == "native" || !((cell, mode, 1, "seeds") in of_pair)) continue
            if (!((cell, "native", 1, "seeds") in of_pair)) continue
            printf "| %s | %s | %s |", test, cell, mode
            for (k = 1; k <= column_count; k++) {
                name = column_list[k]
                printf " %s%s |", beyond_seeds(cell, mode, whats[name], factors[name], digits_of[name]), p_of(cell, mode, name)
            }
            print ""
        }
}

function print_tests(    c, m, k, n, b, w, d, cell, mode) {
    if (head != "no") {
        print "| test | cell | mode against native | pairs | succeeds in fewer, more | p | RRE, deg | p | RTE, cm | p | inlier ratio, % | p | loss | p |"
        print "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    }
    for (c = 1; c <= cell_count; c++)
        for (m = 1; m <= mode_count; m++) {
            cell = cell_list[c]; mode = mode_list[m]
            if (mode == "native" || !((cell, mode, 1, "seeds") in of_pair)) continue
            if (!((cell, "native", 1, "seeds") in of_pair)) continue
            n = differences(cell, mode, "good", d)
            b = w = 0
            for (k = 1; k <= n; k++) { b += d[k] < 0; w += d[k] > 0 }
            printf "| %s | %s | %s | %d | %d, %d | %s | %s | %s | %s | %s |\n", test, cell, mode, n, b, w, p_text(sign_test(b, w)),
                compared(cell, mode, "rre", 1, 3), compared(cell, mode, "rte", 100, 2),
                compared(cell, mode, "ratio", 100, 2), compared(cell, mode, "loss", 1, 3)
        }
}

function group_of(x,    g) {
    for (g = 1; g <= bound_count && x >= bound[g];) g++
    return g
}

# Puts the pairs into groups by what they are themselves.
function group_pairs(cell,    m, p, s) {
    for (m in modes)
        for (p = 1; p <= pairs; p++)
            for (s in seeds)
                if ((cell, m, p, s) in success)
                    stratum[cell, m, p, s] = group_of(of_level[cell, p] / of_level[cell, p, "n"])
}

# Pairs and successes of a mode in each group, without pair `out` (0: of all), in in_group and good_in; totals in [.., 0].
function fill_groups(cell, mode, out,    p, s, g) {
    for (g = 0; g <= bound_count + 1; g++) in_group[mode, g] = good_in[mode, g] = 0
    for (p = 1; p <= pairs; p++)
        for (s in seeds)
            if (p != out && ((cell, mode, p, s) in stratum)) {
                g = stratum[cell, mode, p, s]
                in_group[mode, g]++; in_group[mode, 0]++
                good_in[mode, g] += success[cell, mode, p, s]; good_in[mode, 0] += success[cell, mode, p, s]
            }
}

# Recall of a mode in group g, or of all had it the groups of mode `as`; "" where it has no pair there.
function recall_of(mode, g, as,    k, sum) {
    if (g) return in_group[mode, g] ? good_in[mode, g] / in_group[mode, g] : ""
    for (k = 1; k <= bound_count + 1; k++) {
        if (!in_group[as, k]) continue
        if (!in_group[mode, k]) return ""
        sum += in_group[as, k] / in_group[as, 0] * good_in[mode, k] / in_group[mode, k]
    }
    return sum
}

# Recall of two modes in group g, or in all groups as each or as mode `as` has them; then what the second has more.
function print_stratum(cell, a, b, g, as, title,    p, x, y, n, d, sum, squares, text) {
    n = sum = squares = 0
    for (p = 1; p <= pairs; p++) {
        fill_groups(cell, a, p); fill_groups(cell, b, p)
        x = recall_of(a, g, as == "" ? a : as); y = recall_of(b, g, as == "" ? b : as)
        if (x == "" || y == "") break
        n++; sum += y - x; squares += (y - x) ^ 2
    }
    fill_groups(cell, a, 0); fill_groups(cell, b, 0)
    x = recall_of(a, g, as == "" ? a : as); y = recall_of(b, g, as == "" ? b : as)
    text = x == "" || y == "" ? "-" : sprintf("%+.1f", 100 * (y - x))
    d = squares - sum * sum / (n ? n : 1)
    if (text != "-" && n == pairs && n > 1) text = text sprintf(" ± %.1f", 100 * sqrt((n - 1) / n * (d > 0 ? d : 0)))
    printf "| %s | %s | %s | %d | %d | %s | %s | %s |\n", test, cell, title, in_group[a, g], in_group[b, g],
        x == "" ? "-" : sprintf("%.1f", 100 * x), y == "" ? "-" : sprintf("%.1f", 100 * y), text
}

function print_strata(    c, g, a, b, cell) {
    a = mode_list[1]; b = mode_list[2]
    if (mode_count != 2) { print "registration_table.awk: strata are of two modes" >"/dev/stderr"; exit 2 }
    if (head != "no") {
        printf "| test | cell | %s | %s: pairs | %s: pairs | %s: recall, %% | %s: recall, %% | difference |\n",
            by == "overlap" ? "overlap, %" : by == "turn" ? "turn, deg" : "right ones", a, b, a, b
        print "|---|---|---|---|---|---|---|---|"
    }
    for (c = 1; c <= cell_count; c++) {
        cell = cell_list[c]
        if (by != "right") group_pairs(cell)
        print_stratum(cell, a, b, 1, "", "below " bound[1])
        for (g = 2; g <= bound_count; g++)
            print_stratum(cell, a, b, g, "", bound[g - 1] " to " (by == "right" ? bound[g] - 1 : bound[g]))
        print_stratum(cell, a, b, g, "", bound[bound_count] " and more")
        print_stratum(cell, a, b, 0, "", "all")
        if (by != "right") continue
        print_stratum(cell, a, b, 0, a, "as in " a)
        print_stratum(cell, a, b, 0, b, "as in " b)
    }
}

BEGIN {
    if (by == "") by = "right"
    if (bounds == "") bounds = by == "overlap" ? "30 50 70" : by == "turn" ? "20 40 60" : "5 10 20 40"
    bound_count = split(bounds, bound, " ")
}

END {
    finish_runs()
    if (table == "strata") { print_strata(); exit }
    if (table == "pairs") { print_tests(); exit }
    if (table == "training") { training_columns(); print_values(""); exit }
    test_columns()
    select_columns(columns)
    if (table == "against") { print_against(); exit }
    print_values(test)
}
