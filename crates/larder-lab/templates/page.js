"use strict";
// The page's behaviour: theme, calculators. Text from the document enters by textContent only.
(function () {
  var data = JSON.parse(document.getElementById("larder-data").textContent);
  var root = document.documentElement;

  function el(tag, attributes, children) {
    var node = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (k) {
      if (k === "text") node.textContent = attributes[k];
      else if (k.slice(0, 2) === "on") node.addEventListener(k.slice(2), attributes[k]);
      else if (attributes[k] !== null) node.setAttribute(k, attributes[k]);
    });
    (children || []).forEach(function (c) { node.appendChild(c); });
    return node;
  }

  // Theme: system, light, dark. Remembered where the browser lets a file remember.
  var themes = ["system", "light", "dark"], themeButton = document.getElementById("theme");
  function setTheme(name) {
    if (name === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", name);
    themeButton.textContent = "Theme: " + name;
    try { localStorage.setItem("larder-theme", name); } catch (e) { /* not remembered */ }
  }
  var theme = "system";
  try { theme = localStorage.getItem("larder-theme") || "system"; } catch (e) { /* not remembered */ }
  if (themes.indexOf(theme) < 0) theme = "system";
  setTheme(theme);
  themeButton.hidden = false;
  themeButton.addEventListener("click", function () {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    setTheme(theme);
  });

  // A link into a fold opens it.
  function reveal() {
    var id = location.hash.slice(1), target = id && document.getElementById(id);
    for (var n = target; n; n = n.parentElement) if (n.tagName === "DETAILS") n.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  // The link to where one already is changes nothing, so it opens the fold itself.
  document.addEventListener("click", function (e) {
    var link = e.target.closest && e.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });

  // Calculators.
  var C = larderCalc, cards = [], serial = 0;
  var place = document.getElementById("calculators"), message = document.getElementById("calc-message");
  var addButton = document.getElementById("calc-add");
  var SOURCES = { measured: "This machine", submitted: "Submitted machines", published: "Published in 2003" };
  var LABELS = { measured: "measured here", submitted: "submitted", published: "published" };
  data.presets.forEach(function (p, i) {
    // Two machines may have one name; the fragment must still mean one of them.
    var same = data.presets.slice(0, i).filter(function (q) { return q.source === p.source && q.label === p.label; }).length;
    p.id = p.source + ":" + p.label + (same ? "#" + (same + 1) : "");
  });
  function presetById(id) {
    return data.presets.filter(function (p) { return p.id === id; })[0] || null;
  }

  // Four significant digits, no noise of binary fractions.
  function show(value, digits) {
    if (value === 0) return "0";
    return String(Number(value.toPrecision(digits || 4)));
  }
  // A timing as a field's text: as given, unless it has more digits than a reader takes in.
  function fieldText(value) {
    if (value === null || value === undefined) return "";
    return String(Number(value.toPrecision(6)));
  }

  function Card(state) {
    var self = this, id = "calc-" + (++serial);
    this.preset = state.preset;
    this.typed = state.typed || [null, null, null, null];
    this.pages = state.pages || "1";
    this.inputs = {}; this.errors = {}; this.sources = {}; this.outputs = {};

    var select = el("select", { "aria-label": "Machine of this calculator" });
    ["measured", "submitted", "published"].forEach(function (source) {
      var group = data.presets.filter(function (p) { return p.source === source; });
      if (!group.length) return;
      select.appendChild(el("optgroup", { label: SOURCES[source] }, group.map(function (p) {
        return el("option", { value: p.id, text: p.label });
      })));
    });
    select.appendChild(el("option", { value: "", text: "Own numbers (typed)" }));
    select.addEventListener("change", function () {
      var texts = C.FIELDS.map(function (f) { return self.inputs[f].value; });
      self.preset = presetById(select.value);
      self.typed = self.preset ? [null, null, null, null] : texts;
      self.fill(); self.compute(); save();
    });
    this.select = select;
    var close = el("button", { type: "button", "class": "quiet calc-close", "aria-label": "Close this calculator", title: "Close this calculator", text: "\u2715",
      onclick: function () {
        cards.splice(cards.indexOf(self), 1);
        self.node.remove(); save(); addButton.focus();
      } });
    this.about = el("p", { "class": "note calc-about" });

    var inputs = data.fields.map(function (f, i) {
      return self.field(id, f.key, f.label, "\u00b5s", function (text) { self.typed[i] = text; });
    });
    inputs.push(this.field(id, "pages", "Pages to deallocate at once", "pages", function (text) { self.pages = text; }));
    var outputs = el("dl", {}, []);
    data.quantities.forEach(function (q) {
      var label = el("dt", { text: q.label }, [el("small", { text: q.formula })]);
      var out = el("dd", { "data-q": q.key }, []);
      self.outputs[q.key] = { out: out, label: label.firstChild, q: q };
      outputs.appendChild(label); outputs.appendChild(out);
    });
    this.flags = el("ul", { "class": "calc-flags" });
    this.printed = el("p", { "class": "note" });
    this.better = el("div", { "class": "calc-better" });
    this.node = el("article", { "class": "calc", "aria-label": "Calculator " + serial }, [
      el("div", { "class": "calc-head" }, [select, close]),
      this.about,
      el("div", { "class": "calc-body" }, [
        el("div", { "class": "calc-in" }, [el("h4", { text: "You give" })].concat(inputs)),
        el("div", { "class": "calc-out", "aria-live": "polite" }, [el("h4", { text: "Computed, \u00b5s" }), outputs, this.flags, this.printed])
      ]),
      this.better
    ]);
    this.fill(); this.compute();
  }

  Card.prototype.field = function (id, key, label, unit, typed) {
    var self = this, inputId = id + "-" + key;
    var input = el("input", { id: inputId, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false",
      "data-field": key, "aria-describedby": inputId + "-e " + inputId + "-s" });
    input.addEventListener("input", function () { typed(input.value); self.compute(); save(); });
    var reset = el("button", { type: "button", text: "reset", "aria-label": "Reset " + label, onclick: function () {
      typed(key === "pages" ? "1" : null); self.fill(); self.compute(); save(); input.focus();
    } });
    var source = el("span", { id: inputId + "-s" });
    var error = el("p", { "class": "error", id: inputId + "-e", role: "alert" });
    this.inputs[key] = input; this.errors[key] = error; this.sources[key] = { label: source, reset: reset };
    return el("div", { "class": "field" }, [
      el("label", { "for": inputId, text: label }),
      el("div", { "class": "row" }, [input, el("span", { "class": "unit", text: unit })]),
      el("div", { "class": "src" }, [source, reset]), error
    ]);
  };

  Card.prototype.given = function (i) {
    if (!this.preset) return null;
    var value = this.preset.timings[C.FIELDS[i] + "_us"];
    return value === undefined ? null : value;
  };

  Card.prototype.fill = function () {
    var self = this;
    this.select.value = this.preset ? this.preset.id : "";
    C.FIELDS.forEach(function (f, i) {
      self.inputs[f].value = self.typed[i] !== null ? self.typed[i] : fieldText(self.given(i));
    });
    this.inputs.pages.value = this.pages;
    this.about.textContent = this.preset ? this.preset.detail : "";
  };

  Card.prototype.refuse = function (key, why) {
    this.errors[key].textContent = why ? C.REASONS[why] : "";
    if (why) this.inputs[key].setAttribute("aria-invalid", "true");
    else this.inputs[key].removeAttribute("aria-invalid");
  };

  Card.prototype.compute = function () {
    var self = this, timings = {}, good = true;
    C.FIELDS.forEach(function (f, i) {
      var own = self.typed[i] !== null, published = !own && self.preset;
      var read = own || !self.preset ? C.parseTiming(f, self.inputs[f].value) : { value: self.given(i) };
      self.refuse(f, read.why);
      if (read.why) good = false;
      timings[f] = read.value;
      var absent = !read.why && read.value === null;
      self.sources[f].label.textContent = absent ? "not measured" : published ? LABELS[self.preset.source] : "typed";
      self.sources[f].reset.hidden = !(own && self.preset);
    });
    var pages = C.parsePages(this.pages);
    this.refuse("pages", pages.why);
    this.sources.pages.label.textContent = this.pages === "1" ? "one page" : "typed";
    this.sources.pages.reset.hidden = this.pages === "1";
    var d = good ? C.derive(timings, pages.why ? 1 : pages.value) : null;
    var negative = [];
    data.quantities.forEach(function (q) {
      var o = self.outputs[q.key], value = d ? d[q.key] : null;
      if (q.key === "deallocation" && pages.why) value = null;
      o.label.textContent = q.key === "deallocation" && !pages.why ?
        q.label + ", " + pages.value + (pages.value === 1 ? " page" : " pages") : q.label;
      o.out.textContent = value !== null ? show(value) : d && !(q.key === "deallocation" && pages.why) ? "needs 2p alloc" : "\u2013";
      o.out.className = value === null ? "missing" : value < 0 ? "negative" : "";
      if (value === null) o.out.removeAttribute("data-value");
      else o.out.setAttribute("data-value", String(value));
      if (value !== null && value < 0) negative.push(q);
    });
    this.flags.replaceChildren.apply(this.flags, negative.map(function (q) {
      return el("li", { text: "The assumptions of 2003 do not hold here: " + q.label + " is negative. " + q.negative + "." });
    }));
    this.printed.textContent = d && d.zero_fill_as_printed !== null && !pages.why ?
      "By the sums as the text of 2003 prints them: deallocation " + show(d.deallocation_as_printed, 5) +
      ", zerofill " + show(d.zero_fill_as_printed, 5) + "." : "";
    this.fitted(d, pages.why ? null : pages.value);
  };

  // The better model beside that of 2003: what the run fitted, at as many pages.
  Card.prototype.fitted = function (d, pages) {
    var m = this.preset && this.preset.fitted;
    this.better.hidden = !m;
    this.better.replaceChildren();
    if (!m) return;
    function interval(p) { return p.hi > p.lo ? show(p.value) + " [" + show(p.lo) + ", " + show(p.hi) + "]" : show(p.value); }
    function row(name, fit, derived, key) {
      return el("tr", {}, [el("th", { scope: "row", text: name }),
        el("td", { "class": "num", text: fit, "data-fit": key }), el("td", { "class": "num", text: derived })]);
    }
    var derived = function (v) { return v === null || v === undefined ? "" : show(v); };
    var rows = [row("a call pair", interval(m.call), d && d.allocation !== null ? show(2 * d.allocation + d.object) : "", "call"),
      row("each page", interval(m.per_page), d && d.page_extra !== null ? show(d.page_extra + d.fault_and_zero_fill) : "", "per_page"),
      row("each page table (" + m.table_pages + " pages)", interval(m.per_table), "", "per_table")];
    if (m.zero_fill) rows.push(row("zero-filling a page, measured", interval(m.zero_fill), d ? derived(d.zero_fill) : "", "zero_fill"));
    if (pages !== null) {
      var p = C.predict(m, pages);
      var total = row(pages + (pages === 1 ? " page" : " pages") + ", allocated, touched, freed", interval(p), d ? derived(d.round_trip) : "", "total");
      total.children[1].setAttribute("data-value", String(p.value));
      rows.push(total);
    }
    this.better.appendChild(el("h4", { text: "Fitted beside derived, \u00b5s" }));
    this.better.appendChild(el("p", { "class": "note", text: m.name + ", fitted to many sizes in the run; it does not follow typed values." }));
    this.better.appendChild(el("table", {}, [
      el("thead", {}, [el("tr", {}, [el("th", { scope: "col", text: "cost" }), el("th", { scope: "col", "class": "num", text: "fitted" }), el("th", { scope: "col", "class": "num", text: "by the formulas of 2003" })])]),
      el("tbody", {}, rows)]));
  };

  function add(state) {
    var card = new Card(state);
    cards.push(card);
    place.appendChild(card.node);
    return card;
  }

  // The state lives in the fragment: a link carries it, also from a file.
  var lastSaved = "";
  function save() {
    var state = cards.map(function (c) { return { m: c.preset ? c.preset.id : "", v: c.typed, n: c.pages }; });
    lastSaved = "#calc=" + encodeURIComponent(JSON.stringify(state));
    try { history.replaceState(null, "", lastSaved); } catch (e) { location.hash = lastSaved; }
  }
  function load() {
    if (location.hash.slice(0, 6) !== "#calc=" || location.hash === lastSaved) return false;
    var states;
    try {
      states = JSON.parse(decodeURIComponent(location.hash.slice(6)));
      if (!Array.isArray(states)) throw new Error("no list");
    } catch (e) {
      message.textContent = "The link's calculators could not be read; these are the usual ones.";
      return false;
    }
    cards.forEach(function (c) { c.node.remove(); });
    cards = [];
    message.textContent = "";
    states.slice(0, 24).forEach(function (s) {
      if (!s || typeof s !== "object") return;
      var preset = typeof s.m === "string" ? presetById(s.m) : null;
      if (s.m && !preset) message.textContent = "The link names a machine that this page does not have; its typed numbers are kept.";
      var v = Array.isArray(s.v) ? s.v : [];
      add({ preset: preset, pages: typeof s.n === "string" ? s.n.slice(0, 40) : "1",
        typed: C.FIELDS.map(function (_, i) { return typeof v[i] === "string" ? v[i].slice(0, 40) : null; }) });
    });
    lastSaved = location.hash;
    document.getElementById("calculator").open = true;
    return true;
  }
  function start() {
    var here = data.presets.filter(function (p) { return p.source === "measured"; })[0];
    var ghz = presetById("published:1 GHz G4"), pair = presetById("published:mmap, 450 MHz Cube");
    (here ? [here, ghz] : [ghz, pair]).forEach(function (p) { add({ preset: p }); });
  }
  addButton.hidden = false;
  addButton.addEventListener("click", function () {
    var last = cards[cards.length - 1];
    var next = last ? data.presets.indexOf(last.preset) + 1 : 0;
    var card = add({ preset: data.presets[next % data.presets.length] });
    save(); card.select.focus();
  });
  window.addEventListener("hashchange", load);
  if (!load()) start();
  reveal();
})();
