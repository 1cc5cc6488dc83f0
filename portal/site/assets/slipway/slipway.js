/* What htmx does not do by itself. Every page works without this file; nothing here decides anything. */
(function () {
  "use strict";

  /* Ages count on between two answers of the server; the words are those of the template tag. */
  function words(seconds) {
    if (seconds < 2) { return "now"; }
    if (seconds < 60) { return seconds + " s"; }
    if (seconds < 3600) { return Math.floor(seconds / 60) + " min"; }
    if (seconds < 48 * 3600) { return Math.floor(seconds / 3600) + " h"; }
    return Math.floor(seconds / 86400) + " d";
  }
  function tick() {
    document.querySelectorAll("time[data-age]").forEach(function (element) {
      var seconds = Math.max(0, Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000));
      var text = words(seconds);
      if (element.dataset.age === "ago" && text !== "now") { text += " ago"; }
      if (element.textContent !== text) { element.textContent = text; }
    });
  }
  setInterval(tick, 1000);

  /* Live fragments: none is fetched for a page that nobody sees, and one is fetched at once when it is seen again. */
  document.addEventListener("htmx:beforeRequest", function (event) {
    if (event.target.hasAttribute("data-live") && document.hidden) { event.preventDefault(); }
  });
  document.addEventListener("visibilitychange", function () {
    if (!document.hidden) {
      tick();
      document.querySelectorAll("[data-live]").forEach(function (element) { htmx.trigger(element, "poke"); });
    }
  });

  /* A newer fragment keeps what the reader had ticked, opened, scrolled and focused. */
  var kept = null;
  document.addEventListener("htmx:beforeSwap", function (event) {
    var target = event.detail.target;
    if (!target || !target.hasAttribute("data-live")) { return; }
    kept = { id: target.id, checked: [], open: [], values: {}, scroll: {}, focus: null };
    target.querySelectorAll("input[type=checkbox][id]").forEach(function (box) { if (box.checked) { kept.checked.push(box.id); } });
    target.querySelectorAll("details[id]").forEach(function (box) { if (box.open) { kept.open.push(box.id); } });
    target.querySelectorAll("input[type=text][id], textarea[id]").forEach(function (box) { kept.values[box.id] = box.value; });
    target.querySelectorAll("[data-keep-scroll][id]").forEach(function (box) { kept.scroll[box.id] = [box.scrollTop, box.scrollLeft]; });
    if (target.contains(document.activeElement)) { kept.focus = document.activeElement.id; }
  });
  document.addEventListener("htmx:afterSettle", function () {
    if (!kept) { return; }
    var was = kept;
    kept = null;
    function find(id) { return document.getElementById(id); }
    was.checked.forEach(function (id) { if (find(id)) { find(id).checked = true; } });
    was.open.forEach(function (id) { if (find(id)) { find(id).open = true; } });
    Object.keys(was.values).forEach(function (id) { if (find(id)) { find(id).value = was.values[id]; } });
    Object.keys(was.scroll).forEach(function (id) { if (find(id)) { find(id).scrollTop = was.scroll[id][0]; find(id).scrollLeft = was.scroll[id][1]; } });
    if (was.focus && find(was.focus)) { find(was.focus).focus({ preventScroll: true }); }
    counted();
    tick();
  });

  /* No answer: say that what is shown may be old, and take it back with the next answer. */
  function offline(yes) {
    var bar = document.getElementById("offline");
    if (bar) { bar.hidden = !yes; }
  }
  document.addEventListener("htmx:sendError", function () { offline(true); });
  document.addEventListener("htmx:timeout", function () { offline(true); });
  document.addEventListener("htmx:afterRequest", function (event) { if (event.detail.xhr && event.detail.xhr.status) { offline(false); } });

  /* One click, one request; a form that leaves the page cannot be sent twice. */
  document.addEventListener("submit", function (event) {
    var form = event.target;
    if (event.defaultPrevented || form.hasAttribute("hx-post") || form.method !== "post") { return; }
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.querySelectorAll("button[type=submit]").forEach(function (button) { button.setAttribute("aria-disabled", "true"); });
  });
  window.addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-sent]").forEach(function (form) {
      delete form.dataset.sent;
      form.querySelectorAll("button[aria-disabled]").forEach(function (button) { button.removeAttribute("aria-disabled"); });
    });
  });

  /* Half-filled forms are not lost by a slip. */
  var edited = false;
  document.addEventListener("input", function (event) { if (event.target.closest("form[data-guard]")) { edited = true; } });
  document.addEventListener("submit", function () { edited = false; });
  window.addEventListener("beforeunload", function (event) { if (edited) { event.preventDefault(); } });

  /* Ticked rows: how many, and all at once. */
  function counted() {
    document.querySelectorAll("[data-ticks]").forEach(function (element) {
      var ticked = document.querySelectorAll("input[name=" + element.dataset.ticks + "]:checked").length;
      element.textContent = ticked;
      document.querySelectorAll("[data-needs-ticks=" + element.dataset.ticks + "]").forEach(function (button) { button.disabled = ticked === 0; });
    });
  }
  document.addEventListener("change", function (event) {
    var all = event.target.dataset && event.target.dataset.ticksAll;
    if (all) {
      document.querySelectorAll("input[name=" + all + "]").forEach(function (box) { box.checked = event.target.checked; });
    }
    counted();
  });
  counted();

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-theme-toggle], button[data-copy]");
    if (button && button.hasAttribute("data-theme-toggle")) {
      var dark = document.documentElement.getAttribute("data-bs-theme") === "dark";
      try { localStorage.setItem("slipway-theme", dark ? "light" : "dark"); } catch (error) { /* private window */ }
      window.slipwayTheme();
    } else if (button) {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim()).then(function () {
        button.querySelector("[data-copied]").textContent = "Copied";
      });
    }
    document.querySelectorAll("details.menu[open]").forEach(function (menu) { if (!menu.contains(event.target)) { menu.open = false; } });
  });
  document.addEventListener("keydown", function (event) {
    /* Enter in a box of a form with several acts would press whichever button comes first. */
    if (event.key === "Enter" && event.target.matches("form[data-no-enter] input")) { event.preventDefault(); }
    if (event.key === "Escape") {
      document.querySelectorAll("details.menu[open]").forEach(function (menu) { menu.open = false; menu.querySelector("summary").focus(); });
    }
  });
})();
