// Starts the console, or shows how to build it if its packages are not in this build.
import("./app/main.js")
  .then((app) => app.start(document.getElementById("console")))
  .catch((error) => {
    console.warn(error);
    document.getElementById("unbuilt").hidden = false;
    fetch("/health/")
      .then((answer) => answer.json())
      .then((health) => { document.getElementById("status").textContent = health.status; })
      .catch(() => { document.getElementById("status").textContent = "not responding"; });
  });
