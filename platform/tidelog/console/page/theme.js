// Runs before the first paint: a theme that was chosen earlier. Without one, the system's holds.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("tidelog.theme");
  } catch {
    // A browser that keeps nothing for this page shows the system's theme.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
