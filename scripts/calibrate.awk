# SPDX-License-Identifier: Apache-2.0
# The fit of scripts/calibrate, which sets: podsim, folder (for temporary files), chips, fits,
# measurements (files), figures_out, errors_out, write (the figures go into the table: "yes" or "").
#
# Gauss-Newton on the logarithms of the figures: least squares of ln(predicted / published), the same for all
# figures. A run of `podsim validate` with a chips.csv of its own gives the residuals; derivatives are differences;
# what a row gives under its chip's figures is kept, so that no row runs twice under the same ones.
# Leaving rows out: the normal equations without them, one step from the optimum. A figure of which the rows
# that are left say too little takes the value that fits.csv names in `without`, and podsim runs again.

function fail(text) {
    print "scripts/calibrate: " text > "/dev/stderr"
    failed = 1
    exit 1
}

function read_chips(   line, n, f, i) {
    while ((getline line < chips) > 0) {
        n = split(line, f, ",")
        if (nchips == 0) {
            for (i = 1; i <= n; i++)
                column[f[i]] = i
            ncolumns = n
        }
        for (i = 1; i <= n; i++)
            cell[nchips, i] = f[i]
        row_of[f[1]] = nchips++
    }
    close(chips)
}

function read_fits(   line, f, n, i, c) {
    getline line < fits
    while ((getline line < fits) > 0) {
        split(line, f, ",")
        if (!(f[1] in column))
            fail(fits ": " f[1] " is no column of " chips)
        k = ++K
        key[k] = f[1]; chip_list[k] = f[2]; pattern[k] = f[3]; value[k] = f[4] + 0
        least[k] = f[5] + 0; most[k] = f[6] + 0; digits[k] = f[7] + 0; without[k] = f[8]
        n = split(f[2], c, " ")
        first_chip[k] = c[1]
        for (i = 1; i <= n; i++) {
            if (!(c[i] in row_of))
                fail(fits ": no chip " c[i])
            owner[f[1], c[i]] = k
        }
    }
    close(fits)
}

# One model on one mesh: the rows of a step that share these words. Any other row is a family of its own.
function family(id, line,   key, words, i) {
    if (index(line, ",step,") == 0)
        return id
    split("slice model mesh", words, " ")
    for (i = 1; i <= 3; i++)
        if (match(line, "--" words[i] " [^ \"]+"))
            key = key " " substr(line, RSTART, RLENGTH)
    return key
}

# One row a line; no field holds a line break.
function read_measurements(   line, id, text) {
    getline header < measurements
    while ((getline line < measurements) > 0) {
        id = substr(line, 1, index(line, ",") - 1)
        text = line
        if (match(text, /--(chip|slice) ([0-9]+\*)?[a-z0-9]+/)) {
            text = substr(text, RSTART, RLENGTH)
            sub(/.*[ *]/, "", text)
        } else if (id ~ /^MEM/) { # what follows from a program's text alone
            text = id
            gsub(/^MEM|-.*/, "", text)
        } else
            continue
        ids[++N] = id; raw[id] = line; chip_of[id] = text
        family_of[id] = family(id, line)
        for (k = 1; k <= K; k++)
            if (id ~ pattern[k])
                fitted[id] = 1
    }
    close(measurements)
}

function write_chips(   file, r, i, line) {
    file = folder "/topologies/chips.csv"
    for (k = 1; k <= K; k++) {
        n_list = split(chip_list[k], list, " ")
        for (i = 1; i <= n_list; i++)
            cell[row_of[list[i]], column[key[k]]] = sprintf("%.9g", value[k])
    }
    printf "" > file
    for (r = 0; r < nchips; r++) {
        line = cell[r, 1]
        for (i = 2; i <= ncolumns; i++)
            line = line "," cell[r, i]
        print line > file
    }
    close(file)
}

# The figures that a row runs under.
function figures_of(id,   text, i) {
    for (i = 1; i <= K; i++)
        if (index(" " chip_list[i] " ", " " chip_of[id] " "))
            text = text sprintf(" %.9g", value[i])
    return text
}

# Residuals of the rows in want[] into res[] (unset: podsim can't run the row).
function run(want, res,   file, command, line, f, i, any) {
    file = folder "/rows.csv"
    print header > file
    for (i = 1; i <= N; i++) {
        if (!(ids[i] in want))
            continue
        line = figures_of(ids[i])
        if ((ids[i], line) in known)
            res[ids[i]] = known[ids[i], line]
        else {
            print raw[ids[i]] > file
            any = 1
        }
    }
    close(file)
    if (!any)
        return
    write_chips()
    command = "PODSIM_DATA='" folder "' " podsim " validate --format csv -q --measurements '" file "' 2>/dev/null"
    while ((command | getline line) > 0) {
        split(line, f, ",")
        if (f[1] == "id")
            continue
        published[f[1]] = f[5]
        class[f[1]] = f[2]
        if (f[6] == "-")
            delete res[f[1]]
        else {
            res[f[1]] = log(f[6] / f[5])
            known[f[1], figures_of(f[1])] = res[f[1]]
        }
    }
    close(command)
    runs++
}

function all_fitted(want,   i) {
    split("", want)
    for (i = 1; i <= N; i++)
        if ((ids[i] in fitted) && !(ids[i] in unsupported))
            want[ids[i]] = 1
}

function squares(res,   id, sum) {
    for (id in res)
        if (id in fitted)
            sum += res[id] * res[id]
    return sum
}

# Derivatives of all residuals by all figures, at the values that base[] belongs to.
function differentiate(   id, shifted, want, kept, step) {
    split("", J)
    for (k = 1; k <= K; k++) {
        split("", want); split("", shifted)
        for (id in base)
            if (id ~ pattern[k])
                want[id] = 1
        kept = value[k]
        step = kept * 1.02 <= most[k] ? 0.02 : -0.02
        value[k] = kept * (1 + step)
        at = k
        run(want, shifted)
        k = at
        value[k] = kept
        for (id in shifted)
            J[id, k] = (shifted[id] - base[id]) / log(1 + step)
    }
    split("", T)
    split("", B)
    for (id in base)
        add_row(id, T, B)
}

# A row's share of the normal equations.
function add_row(id, T, B,   a, b, i, j, n, used) {
    for (a = 1; a <= K; a++)
        if ((id, a) in J)
            used[++n] = a
    for (i = 1; i <= n; i++) {
        a = used[i]
        B[a] += J[id, a] * base[id]
        for (j = 1; j <= n; j++) {
            b = used[j]
            T[a, b] += J[id, a] * J[id, b]
        }
    }
}

# Newton step of the rows not in out[] into delta[]; figures in fixed[] keep delta = fixed[k].
# Figures of which the rows say less than `information` (the sum of squared derivatives) get none[k] = 1.
function solve(out, fixed, delta, none,   id, a, b, A, i, j, free, nfree, pivot, t, c, less, lessB) {
    split("", none); split("", delta); split("", less); split("", lessB)
    for (id in out)
        if (id in base)
            add_row(id, less, lessB)
    nfree = 0
    for (a = 1; a <= K; a++) {
        if (a in fixed)
            delta[a] = fixed[a]
        else if (T[a, a] - less[a, a] < information)
            none[a] = 1
        else
            free[++nfree] = a
    }
    for (i = 1; i <= nfree; i++) {
        a = free[i]
        for (j = 1; j <= nfree; j++) {
            b = free[j]
            A[i, j] = (i == j ? 1e-7 : 0) + T[a, b] - less[a, b]
        }
        A[i, nfree + 1] = lessB[a] - B[a]
        for (b in delta)
            A[i, nfree + 1] -= (T[a, b] - less[a, b]) * delta[b]
    }
    for (i = 1; i <= nfree; i++) {
        pivot = i
        for (j = i + 1; j <= nfree; j++)
            if (A[j, i] * A[j, i] > A[pivot, i] * A[pivot, i])
                pivot = j
        for (c = i; c <= nfree + 1; c++) {
            t = A[i, c]; A[i, c] = A[pivot, c]; A[pivot, c] = t
        }
        for (j = 1; j <= nfree; j++) {
            if (j == i)
                continue
            t = A[j, i] / A[i, i]
            for (c = i; c <= nfree + 1; c++)
                A[j, c] -= t * A[i, c]
        }
    }
    for (i = 1; i <= nfree; i++)
        delta[free[i]] = A[i, nfree + 1] / A[i, i]
}

# The same with figures that are at the end of their range, and would leave it, kept there.
function solve_within(out, fixed, delta, none,   again) {
    do {
        again = 0
        solve(out, fixed, delta, none)
        for (k = 1; k <= K; k++)
            if (!(k in fixed) && (k in delta) &&
                ((delta[k] > 0 && value[k] >= most[k]) || (delta[k] < 0 && value[k] <= least[k]))) {
                fixed[k] = 0
                again = 1
            }
    } while (again)
}

function clamp(x, low, high) {
    return x < low ? low : x > high ? high : x
}

function fit(   iteration, want, trial, delta, none, out, fixed, old, factor, now, next_sum, moved, id) {
    all_fitted(want)
    run(want, base)
    for (id in want)
        if (!(id in base)) {
            unsupported[id] = 1
            print "left out, as podsim can't run it: " id > "/dev/stderr"
        }
    if (length_of(base) == 0)
        fail(podsim " runs no row")
    all_fitted(want)
    for (iteration = 1; iteration <= 10; iteration++) {
        now = squares(base)
        printf "iteration %d: %d rows, loss %.4f %%\n", iteration, length_of(base), 100 * sqrt(now / length_of(base)) > "/dev/stderr"
        differentiate()
        split("", fixed); split("", out)
        solve_within(out, fixed, delta, none)
        for (k = 1; k <= K; k++)
            old[k] = value[k]
        factor = 1
        do {
            moved = 0
            for (k = 1; k <= K; k++) {
                value[k] = clamp(old[k] * exp(clamp(factor * delta[k], -0.7, 0.7)), least[k], most[k])
                t = log(value[k] / old[k])
                moved = t * t > moved ? t * t : moved
            }
            split("", trial)
            run(want, trial)
            next_sum = squares(trial)
            factor /= 2
        } while (next_sum > now * 1.000001 && factor > 0.05)
        if (next_sum > now) {
            for (k = 1; k <= K; k++)
                value[k] = old[k]
            break
        }
        for (id in trial)
            base[id] = trial[id]
        for (k = 1; k <= K; k++)
            if (value[k] != old[k])
                printf "  %s of %s: %.4g\n", key[k], chip_list[k], value[k] > "/dev/stderr"
        if (moved < 1e-6 || next_sum > now * 0.995)
            break
    }
    for (k = 1; k <= K; k++)
        value[k] = sprintf("%.*f", digits[k], value[k]) + 0
    run(want, base)
}

function length_of(list,   id, n) {
    for (id in list)
        n++
    return n
}

# What a figure without rows takes: a number, or that of another chip.
function fallback(figure, name) {
    if (name ~ /^[0-9.]+$/)
        return name + 0
    return (figure, name) in owner ? value[owner[figure, name]] : cell[row_of[name], column[figure]] + 0
}

# Values for rows without those in out[]: kept figures move by one step, lost ones fall back.
function move_without(out,   delta, none, fixed, name) {
    split("", fixed)
    solve(out, fixed, delta, none)
    lost = 0
    for (k = 1; k <= K; k++)
        if (k in none) {
            name = without[k]
            if (!determined[k])
                fixed[k] = 0
            else {
                lost = 1
                fixed[k] = log(fallback(key[k], name) / value[k])
            }
        }
    solve_within(out, fixed, delta, none)
    for (k = 1; k <= K; k++)
        shift[k] = clamp(delta[k], log(least[k] / value[k]), log(most[k] / value[k]))
}

# The error of the rows in out[] when the fit doesn't know them, into errors[]; with `others`, also of the rows
# there, which no figure is fitted to.
function leave_out(out, errors, others,   id, kept, res, want) {
    move_without(out)
    if (!lost && !length_of(others)) {
        for (id in out) {
            errors[id] = base[id]
            for (k = 1; k <= K; k++)
                errors[id] += J[id, k] * shift[k]
        }
        return
    }
    for (k = 1; k <= K; k++) {
        kept[k] = value[k]
        value[k] *= exp(shift[k])
    }
    for (id in out)
        want[id] = 1
    for (id in others)
        want[id] = 1
    run(want, res)
    for (k = 1; k <= K; k++)
        value[k] = kept[k]
    for (id in res)
        errors[id] = res[id]
}

function leave_family_out(name,   i, out, others, count) {
    for (i = 1; i <= N; i++)
        if (family_of[ids[i]] == name && (ids[i] in everything)) {
            by_family[ids[i]] = everything[ids[i]]
            others[ids[i]] = 1
            if (ids[i] in base) {
                out[ids[i]] = 1
                count++
            }
        }
    if (count == length_of(others))
        split("", others)
    if (count > 0)
        leave_out(out, by_family, others)
}

function percent(id, list) {
    return (id in list) ? sprintf("%.6f", exp(list[id]) - 1) : "-"
}

# How many of the rows are of which chip, as "v5p:77 v4:3".
function row_chips(rows,   n, r, i, c, count, text) {
    n = split(rows, r, " ")
    for (i = 1; i <= n; i++)
        count[chip_of[r[i]]]++
    for (i = 0; i < nchips; i++) {
        c = cell[i, 1]
        if (c in count)
            text = text (text == "" ? "" : " ") c ":" count[c]
    }
    return text
}

function report(   i, id, out, rows, r, none, fixed, delta) {
    print "figure,chips,value,in_table,row_chips,rows" > figures_out
    for (k = 1; k <= K; k++) {
        rows = ""
        for (i = 1; i <= N; i++)
            if ((ids[i] in base) && J[ids[i], k] * J[ids[i], k] > 1e-4)
                rows = rows (rows == "" ? "" : " ") ids[i]
        printf "%s,%s,%s,%s,%s,%s\n", key[k], chip_list[k], value[k], write ? value[k] : table_value[k], row_chips(rows), rows > figures_out
    }
    print "id,class,chip,published,predicted,error_frac,without_row_frac,without_family_frac,without_chip_frac" > errors_out
    for (i = 1; i <= N; i++) {
        id = ids[i]
        if (!(id in everything))
            continue
        printf "%s,%s,%s,%s,%.9g,%s,%s,%s,%s\n", id, class[id], chip_of[id], published[id],
            published[id] * exp(everything[id]), percent(id, everything),
            percent(id, by_row), percent(id, by_family), percent(id, by_chip) > errors_out
    }
}

BEGIN {
    nchips = 0
    information = 0.0025 # 10 % more of a figure would move the rows by less than 0.5 %
    read_chips()
    read_fits()
    for (k = 1; k <= K; k++)
        table_value[k] = cell[row_of[first_chip[k]], column[key[k]]]
    read_measurements()
    fit()
    differentiate()
    split("", out)
    split("", fixed)
    solve(out, fixed, delta, none)
    for (k = 1; k <= K; k++)
        determined[k] = !(k in none)
    split("", all)
    for (i = 1; i <= N; i++)
        all[ids[i]] = 1
    run(all, everything)
    split("", none)
    for (i = 1; i <= N; i++) {
        split("", out)
        out[ids[i]] = 1
        if (ids[i] in base)
            leave_out(out, by_row, none)
        else if (ids[i] in everything)
            by_row[ids[i]] = everything[ids[i]]
    }
    for (i = 1; i <= N; i++)
        if (!(ids[i] in by_family))
            leave_family_out(family_of[ids[i]])
    for (chip in row_of) {
        split("", out)
        split("", others)
        for (i = 1; i <= N; i++)
            if (chip_of[ids[i]] == chip) {
                others[ids[i]] = 1
                if (ids[i] in base)
                    out[ids[i]] = 1
            }
        if (length_of(out) > 0)
            leave_out(out, by_chip, others)
    }
    report()
    write_chips()
    printf "%d runs of podsim validate\n", runs > "/dev/stderr"
}
