// Reauthentication: some time after sign-in, the server requires the password again before second factors change.
import { Problem } from "../api.js";
import { Field } from "../ui/form.js";
import { html, useState } from "../view.js";

/** Tracks whether the password is required. wrap wraps a form's send, which receives a body with the password.
 *  @returns {{isRequired: boolean, wrap: (send: (values: Record<string, any>, password: Record<string,
 * any>) => Promise<any>) => (values: Record<string, any>) => Promise<any>}} */
export function useReauth() {
  const [isRequired, setRequired] = useState(false);
  return {
    isRequired,
    wrap: (send) => async (values) => {
      try {
        return await send(values, isRequired ? { password: values.password ?? "" } : {});
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
  <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} />`;
