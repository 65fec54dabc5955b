// Reauthentication: some time after sign-in, the server requires the password again before second factors, roles and administrators change.
import { Problem } from "../api.js";
import { Field } from "../ui/form.js";
import { html, useState } from "../view.js";

/** Tracks whether the password is required. wrap wraps a form's send, which receives a body with the password, under name.
 *  @param {string} [name] @returns {{isRequired: boolean, name: string, wrap: (send: (values: Record<string, any>, password: Record<string,
 * any>) => Promise<any>) => (values: Record<string, any>) => Promise<any>}} */
export function useReauth(name = "password") {
  const [isRequired, setRequired] = useState(false);
  return {
    isRequired, name,
    wrap: (send) => async (values) => {
      try {
        return await send(values, isRequired ? { [name]: values[name] ?? "" } : {});
      } catch (error) {
        if (error instanceof Problem && error.code === "reauthentication_required") {
          setRequired(true);
        }
        throw error;
      }
    },
  };
}

/** The password field, shown once it is required. @param {{reauth: ReturnType<typeof useReauth>, errors: Record<string, string[]>}} props
 *  */
export const ReauthField = ({ reauth, errors }) => reauth.isRequired && html`
  <${Field} label=${reauth.name === "password" ? "Password" : "Your password"} name=${reauth.name} kind="password"
    autocomplete="current-password" errors=${errors} />`;
