// Starts the console, or says how to build it when its packages were not copied into this build.
import("/app/main.js")
  .then((app) => app.start(document.getElementById("console")))
  .catch((error) => {
    console.warn(error);
    document.getElementById("unbuilt").hidden = false;
    fetch("/health/")
      .then((answer) => answer.json())
      .then((health) => { document.getElementById("status").textContent = health.status; })
      .catch(() => { document.getElementById("status").textContent = "not answering"; });
  });
