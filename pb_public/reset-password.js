const query = new URLSearchParams(location.search);
const token = query.get("token") ?? "";
history.replaceState(null, "", location.pathname); // removes the token from the address bar
const form = document.getElementById("form");
const result = document.getElementById("result");
let language = { say: (text) => text, sayProblem: (text) => text }; // until it is loaded, and where the console is not in the build

const show = (text) => { result.textContent = language.sayProblem(text); };

async function translate() {
  language = await import("./app/language.js");
  await language.beginLanguage(query.get("lang") ?? undefined);
  document.title = `${language.say("Set your password")} · Vigil`;
  for (const node of document.querySelectorAll("h1, p, label, button")) {
    node.textContent = language.say(node.textContent);
  }
}

async function setPassword() {
  const answer = await fetch("/api/v1/auth/password-reset/confirm/", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      token,
      new_password: document.getElementById("password").value,
      new_password_confirm: document.getElementById("again").value,
    }),
  });
  const body = await answer.json();
  const problems = Object.values(body.field_errors ?? {}).flat();
  form.hidden = answer.ok;
  return (problems.length > 0 ? problems : [body.detail]).map(language.sayProblem).join(" ");
}

if (token === "") {
  form.hidden = true;
  show("This link is incomplete. Open the link from the email again, or request a new one.");
}
void translate().catch(() => {});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  result.textContent = "";
  result.textContent = await setPassword().catch(() => language.say("The server does not respond. Check the connection and try again."));
});
