const token = new URLSearchParams(location.search).get("token") ?? "";
history.replaceState(null, "", location.pathname); // removes the token from the address bar
const form = document.getElementById("form");
const result = document.getElementById("result");

if (token === "") {
  form.hidden = true;
  result.textContent = "This link is incomplete. Open the link from the email again, or request a new one.";
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
  return problems.length > 0 ? problems.join(" ") : body.detail;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  result.textContent = "";
  result.textContent = await setPassword().catch(() => "The server does not respond. Try again in a moment.");
});
