"""Writes stats.json, the vectors that the lab's statistics are tested against.

    pip install numpy scipy && python3 make_stats.py > stats.json

Every interval is found in another way than the lab finds it: by inverting SciPy's tests, not by counting ranks.
"""

import itertools
import json
import math
import sys

import numpy as np
from scipy import stats

LEVEL = 0.95
rng = np.random.default_rng(20031)


def listed(x):
    return [float(v) for v in x]


SAMPLES = {
    "six": rng.normal(5, 1, 6),
    "seven": rng.exponential(3, 7),
    "ten": rng.lognormal(0, 0.3, 10),
    "fifteen spiky": rng.normal(100, 2, 15) + 400 * (rng.random(15) < 0.15),
    "twenty": rng.lognormal(3, 0.5, 20),
    "forty": rng.normal(-2, 7, 40),
    "seventy-five": rng.exponential(1e-6, 75),
    "hundred and twenty": rng.lognormal(0, 1, 120),
    "two hundred": rng.normal(0, 1e9, 200),
}


def inverted(candidates, p_of, level):
    """The ends, among the sorted candidates, of the shifts that a test does not reject."""
    c = np.unique(candidates)
    mids = np.concatenate([[c[0] - 1 - abs(c[0])], (c[:-1] + c[1:]) / 2, [c[-1] + 1 + abs(c[-1])]])
    centre = len(mids) // 2
    alpha = 1 - level

    def edge(inside, outside):
        # p falls from the middle outwards.
        while abs(inside - outside) > 1:
            mid = (inside + outside) // 2
            if p_of(mids[mid]) > alpha:
                inside = mid
            else:
                outside = mid
        return inside

    if p_of(mids[0]) > alpha:
        return None
    left, right = edge(centre, 0), edge(centre, len(mids) - 1)
    # mids[i] lies between c[i - 1] and c[i].
    return float(c[left - 1]), float(c[right])


def median_rows():
    rows = []
    for name, x in SAMPLES.items():
        for level in (0.9, 0.95, 0.99):
            ci = stats.quantile_test(x, q=np.median(x), p=0.5).confidence_interval(level)
            # SciPy's interval is not symmetric in rank for every n; the symmetric one by the binomial law.
            n = len(x)
            k = max((k for k in range(1, n // 2 + 1) if stats.binom.cdf(k - 1, n, 0.5) <= (1 - level) / 2), default=0)
            if k == 0:
                continue
            s = np.sort(x)
            assert s[k - 1] <= np.median(x) <= s[n - k]
            assert not math.isfinite(ci.low) or s[k - 1] <= ci.low or abs(s[k - 1] - ci.low) < 1e-12
            rows.append({"x": name, "level": level, "value": float(np.median(x)), "lo": float(s[k - 1]),
                         "hi": float(s[n - k]), "coverage": float(1 - 2 * stats.binom.cdf(k - 1, n, 0.5))})
    return rows


def hodges_lehmann_rows():
    rows = []
    for name, x in SAMPLES.items():
        n = len(x)
        if n > 100:
            continue
        walsh = [(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)]
        for level in (0.9, LEVEL):
            ends = inverted(walsh, lambda t: stats.wilcoxon(x - t, method="exact").pvalue, level)
            if ends is None:
                continue
            rows.append({"x": name, "level": level, "value": float(np.median(walsh)), "lo": ends[0], "hi": ends[1]})
    return rows


def ratio_rows():
    rows = []
    for n in (6, 11, 22, 50):
        a = rng.lognormal(2, 0.4, n)
        b = a / 1.1 * rng.lognormal(0, 0.05, n)
        x = np.log(a / b)
        walsh = [(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)]
        lo, hi = inverted(walsh, lambda t: stats.wilcoxon(x - t, method="exact").pvalue, LEVEL)
        rows.append({"a": listed(a), "b": listed(b), "value": math.exp(np.median(walsh)), "lo": math.exp(lo),
                     "hi": math.exp(hi)})
    return rows


def shift_rows():
    rows = []
    for n, m in ((4, 4), (6, 9), (15, 12), (30, 31)):
        a, b = rng.normal(10, 2, n), rng.normal(9, 3, m)
        d = [x - y for x in a for y in b]
        lo, hi = inverted(d, lambda t: stats.mannwhitneyu(a - t, b, method="exact").pvalue, LEVEL)
        test = stats.mannwhitneyu(a, b, method="exact")
        rows.append({"a": listed(a), "b": listed(b), "value": float(np.median(d)), "lo": lo, "hi": hi,
                     "u": float(test.statistic), "p": float(test.pvalue), "exact": True})
    for n, m in ((12, 9), (60, 55)):
        a, b = np.round(rng.normal(10, 3, n)), np.round(rng.normal(9, 3, m))
        test = stats.mannwhitneyu(a, b, method="asymptotic")
        rows.append({"a": listed(a), "b": listed(b), "u": float(test.statistic), "p": float(test.pvalue), "exact": False})
    return rows


def signed_rank_rows():
    rows = []
    for n in (6, 13, 50, 90):
        x = rng.normal(0.3, 1, n)
        test = stats.wilcoxon(x, method="exact")
        rows.append({"x": listed(x), "p": float(test.pvalue), "exact": True})
    x = rng.normal(0.1, 1, 130)
    rows.append({"x": listed(x), "p": float(stats.wilcoxon(x, method="approx", correction=True).pvalue), "exact": False})
    # Ties and zeros: every assignment of signs counted.
    for x in ([1, 1, -1, 2, 2, 3, -4, 4, 0, 5], [3, 3, 3, -3, 3, 0, 0, 3, 1]):
        x = np.array([v for v in x], float)
        y = x[x != 0]
        ranks = stats.rankdata(np.abs(y))
        seen = ranks[y > 0].sum()
        far = abs(seen - ranks.sum() / 2)
        sums = [sum(r for r, s in zip(ranks, signs) if s) for signs in itertools.product((0, 1), repeat=len(y))]
        p = sum(abs(s - ranks.sum() / 2) >= far - 1e-9 for s in sums) / len(sums)
        rows.append({"x": listed(x), "p": float(min(1, p)), "exact": True})
    return rows


def moments_rows():
    return [{"x": name, "mean": float(np.mean(x)), "sd": float(np.std(x, ddof=1)), "se": float(stats.sem(x))}
            for name, x in SAMPLES.items()]


def welch_rows():
    rows = []
    for n, m in ((10, 10), (4, 25), (2, 3)):
        a, b = rng.normal(100, 3, n), rng.normal(97, 9, m)
        test = stats.ttest_ind(a, b, equal_var=False)
        ci = test.confidence_interval(LEVEL)
        rows.append({"a": listed(a), "b": listed(b), "t": float(test.statistic), "df": float(test.df),
                     "p": float(test.pvalue), "lo": float(ci.low), "hi": float(ci.high)})
    return rows


def laws():
    rows = {"normal": [], "student": [], "fisher": [], "student_quantile": [], "normal_quantile": []}
    for z in (-37, -8.5, -3, -2.9, -1.96, -0.1, 0, 0.4, 2.2, 2.83, 6):
        rows["normal"].append([z, float(stats.norm.cdf(z))])
    for p in (1e-12, 0.001, 0.025, 0.3, 0.5, 0.9, 0.9995):
        rows["normal_quantile"].append([p, float(stats.norm.ppf(p))])
    for df in (1, 2, 2.7, 9, 33.3, 400, 1e6):
        for t in (-40, -3, -0.2, 0, 1.4, 12):
            rows["student"].append([t, df, float(stats.t.cdf(t, df))])
        for p in (0.0005, 0.025, 0.4, 0.5, 0.95):
            rows["student_quantile"].append([p, df, float(stats.t.ppf(p, df))])
    for d1, d2 in ((1, 1), (2, 7), (5, 40), (31, 3), (12, 900)):
        for f in (0.01, 0.7, 1, 2.5, 30):
            rows["fisher"].append([f, d1, d2, float(stats.f.sf(f, d1, d2))])
    return rows


def holm_rows():
    rows = []
    for p in ([0.01, 0.04, 0.03, 0.005], [0.2], [0.5, 0.6, 0.9], [1e-9, 0.02, 0.02, 0.02, 0.7]):
        order = sorted(range(len(p)), key=lambda i: p[i])
        adjusted = [max(min(1.0, (len(p) - r) * p[order[r]]) for r in range(order.index(i) + 1)) for i in range(len(p))]
        rows.append({"p": p, "adjusted": adjusted})
    return rows


def series_rows():
    rows = []
    drift = np.cumsum(rng.normal(0, 1, 30)) + 50
    white = rng.normal(10, 1, 30)
    white[[4, 20]] = 30, -11
    flat = np.array([7.0] * 9 + [7.5, 19.0])
    for x in (drift, white, flat):
        d = x - x.mean()
        mad = stats.median_abs_deviation(x)
        med = np.median(x)
        if mad > 0:
            z = 0.6745 * np.abs(x - med) / mad
        else:
            z = np.abs(x - med) / (1.253314 * np.mean(np.abs(x - med)))
        rows.append({"x": listed(x), "r": float((d[:-1] * d[1:]).sum() / (d * d).sum()),
                     "outliers": [int(i) for i in np.flatnonzero(z > 3.5)]})
    return rows


def fit_rows():
    rows = []
    pages = np.array([1, 2, 4, 8, 16, 32, 64], float)
    cases = [
        # Straight line with replicates, right form.
        (np.repeat(pages, 5), lambda x: [1, x], lambda x: 700 + 95 * x, 12, False),
        # A bend that a straight line does not have.
        (np.repeat(pages, 5), lambda x: [1, x], lambda x: 700 + 95 * x + 0.8 * x * x, 12, False),
        # Call, pages, page tables; noise in proportion and weights for it.
        (np.repeat(np.append(pages, [600, 1100]), 4), lambda x: [1, x, math.ceil(x / 512)],
         lambda x: 500 + 100 * x + 900 * math.ceil(x / 512), None, True),
        # No replicates: no test of the form.
        (np.arange(1.0, 12), lambda x: [1, x, x * x, x**3], lambda x: 3 - x + 0.1 * x**3, 0.5, False),
    ]
    for x, columns, law, sd, weigh in cases:
        a = np.array([columns(v) for v in x], float)
        truth = np.array([law(v) for v in x])
        y = truth * rng.normal(1, 0.02, len(x)) if sd is None else truth + rng.normal(0, sd, len(x))
        w = 1 / y**2 if weigh else np.ones(len(x))
        r = np.sqrt(w)[:, None]
        beta, *_ = np.linalg.lstsq(a * r, y * r[:, 0], rcond=None)
        left = (w * (y - a @ beta) ** 2).sum()
        df = len(y) - a.shape[1]
        cov = left / df * np.linalg.inv((a * r).T @ (a * r))
        se = np.sqrt(np.diag(cov))
        t = stats.t.ppf(1 - (1 - LEVEL) / 2, df)
        total = (w * (y - np.average(y, weights=w)) ** 2).sum()
        row = {"rows": [listed(v) for v in a], "y": listed(y), "weights": listed(w), "coefficients": listed(beta),
               "lo": listed(beta - t * se), "hi": listed(beta + t * se), "p": listed(2 * stats.t.sf(np.abs(beta / se), df)),
               "residual_sd": math.sqrt(left / df), "r2": float(1 - left / total)}
        groups = {}
        for i, v in enumerate(x):
            groups.setdefault(v, []).append(i)
        pure = sum((w[g] * (y[g] - np.average(y[g], weights=w[g])) ** 2).sum() for g in groups.values())
        df_lack, df_pure = len(groups) - a.shape[1], len(y) - len(groups)
        if df_lack > 0 and df_pure > 0:
            f = (left - pure) / df_lack / (pure / df_pure)
            row["lack"] = {"f": float(f), "p": float(stats.f.sf(f, df_lack, df_pure)), "df_lack": df_lack, "df_pure": df_pure}
        rows.append(row)
    return rows


def bca_rows():
    rows = []
    for seed in (1, 2):
        x = np.random.default_rng(seed).lognormal(0, 1, 14)
        estimate = x.mean()
        values = np.random.default_rng(seed + 9).choice(x, (400, 14)).mean(axis=1)
        without = np.array([np.delete(x, i).mean() for i in range(14)])
        z0 = stats.norm.ppf(((values < estimate).sum() + 0.5 * (values == estimate).sum()) / len(values))
        d = without.mean() - without
        a = (d**3).sum() / (6 * ((d**2).sum()) ** 1.5)
        ends = []
        for p in (0.025, 0.975):
            z = z0 + stats.norm.ppf(p)
            ends.append(float(np.quantile(values, stats.norm.cdf(z0 + z / (1 - a * z)))))
        rows.append({"values": listed(values), "estimate": float(estimate), "without": listed(without), "lo": ends[0],
                     "hi": ends[1], "percentile": listed(np.quantile(values, [0.025, 0.975]))})
    return rows


json.dump({
    "samples": {k: listed(v) for k, v in SAMPLES.items()},
    "median": median_rows(),
    "hodges_lehmann": hodges_lehmann_rows(),
    "ratio": ratio_rows(),
    "shift": shift_rows(),
    "signed_rank": signed_rank_rows(),
    "moments": moments_rows(),
    "welch": welch_rows(),
    "laws": laws(),
    "holm": holm_rows(),
    "series": series_rows(),
    "fit": fit_rows(),
    "bca": bca_rows(),
}, sys.stdout, indent=None, separators=(",", ":"))
print()
