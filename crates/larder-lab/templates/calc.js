"use strict";
// The calculator's arithmetic: the same as the program's calc module, held to it by tests/vectors/calc.json.
// Pure functions, microseconds throughout.
var larderCalc = (function () {
  var MAX_US = 1e12, MAX_PAGES = 1073741824;
  var FIELDS = ["alloc1", "alloc1_fault", "alloc2", "alloc2_fault"];
  var QUANTITIES = ["page_extra", "allocation", "page_fault_extra", "object",
    "fault_and_zero_fill", "deallocation", "zero_fill"];
  var REASONS = {
    empty: "empty: type the time of one operation in microseconds",
    text: "not a number: type digits, such as 11.2",
    comma: "not a number: write the decimals after a point, such as 77.3",
    infinite: "infinite: an operation ends, so its time is a finite number",
    nan: "NaN is no time: the timing failed, measure again",
    negative: "negative: a time is zero or more",
    large: "more than eleven days for one operation: the unit is the microsecond",
    pages: "type a whole number of pages from 1 to 1073741824"
  };

  // {value} or {why}; the grammar is a decimal number, nothing that only a script would call one.
  function parseNumber(text) {
    text = text.trim();
    if (text === "") return { why: "empty" };
    var bare = text.replace(/^[+-]+/, "").toLowerCase();
    if (bare === "nan") return { why: "nan" };
    if (bare === "inf" || bare === "infinity" || bare === "\u221e") return { why: "infinite" };
    if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return { value: Number(text) };
    var parts = text.split(",");
    if (parts.length === 2 && "value" in parseNumber(parts[0] + "." + parts[1])) return { why: "comma" };
    return { why: "text" };
  }

  function check(value) {
    if (Number.isNaN(value)) return "nan";
    if (value < 0) return "negative";
    if (!Number.isFinite(value)) return "infinite";
    if (value > MAX_US) return "large";
    return null;
  }

  // {value} (null for an absent 2p alloc) or {why}.
  function parseTiming(field, text) {
    var bare = text.trim();
    if (field === "alloc2" && (bare === "" || bare === "-" || bare.toLowerCase() === "n/a")) return { value: null };
    var read = parseNumber(text);
    if (read.why) return read;
    var why = check(read.value);
    return why ? { why: why } : { value: read.value };
  }

  function parsePages(text) {
    var bare = text.trim(), n = Number(bare);
    return /^\d+$/.test(bare) && n >= 1 && n <= MAX_PAGES ? { value: n } : { why: "pages" };
  }

  // t: the four timings by field name, alloc2 may be null. A cost is null where it needs alloc2.
  function derive(t, pages) {
    var d = {};
    QUANTITIES.forEach(function (q) { d[q] = null; });
    d.deallocation_as_printed = d.zero_fill_as_printed = d.round_trip = null;
    d.page_fault_extra = t.alloc1_fault - t.alloc1;
    if (t.alloc2 === null || t.alloc2 === undefined) return d;
    d.page_extra = t.alloc2 - t.alloc1;
    d.allocation = (t.alloc1 - d.page_extra) / 2;
    var faultExtra2 = t.alloc2_fault - t.alloc2;
    d.object = 2 * d.page_fault_extra - faultExtra2;
    d.fault_and_zero_fill = faultExtra2 / 2 - d.object / 2;
    var onePage = d.allocation + d.page_extra / 2;
    d.zero_fill = d.fault_and_zero_fill - onePage / 4 - d.object / 2;
    d.deallocation = onePage + d.page_extra / 2 * pages + d.object / 2;
    d.zero_fill_as_printed = d.fault_and_zero_fill - d.allocation / 4 - d.object / 2;
    d.deallocation_as_printed = d.allocation + d.page_extra / 2 * pages + d.object / 2;
    d.round_trip = d.allocation + d.page_extra / 2 * pages + d.fault_and_zero_fill * pages +
      d.object / 2 + d.deallocation_as_printed;
    return d;
  }

  // The fitted model at so many pages: {value, lo, hi}.
  function predict(m, pages) {
    var tables = Math.ceil(pages / Math.max(m.table_pages, 1));
    function at(part) { return m.call[part] + pages * m.per_page[part] + tables * m.per_table[part]; }
    return { value: at("value"), lo: at("lo"), hi: at("hi") };
  }

  return { FIELDS: FIELDS, QUANTITIES: QUANTITIES, REASONS: REASONS, parseTiming: parseTiming,
    parsePages: parsePages, derive: derive, predict: predict };
})();
