/* Loaded before the first paint: the reader's choice of light or dark, else the system's. */
(function () {
  var media = window.matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    var chosen = null;
    try { chosen = localStorage.getItem("slipway-theme"); } catch (error) { chosen = null; }
    document.documentElement.setAttribute("data-bs-theme", chosen || (media.matches ? "dark" : "light"));
  }
  apply();
  media.addEventListener("change", apply);
  window.slipwayTheme = apply;
})();
