// Reauthentication: some time after sign-in, the server requires the password again before second factors change.
import { Problem } from "../api.js";
import { Field } from "../ui/form.js";
import { html, useState } from "../view.js";

/** Tracks whether the password is required. asking wraps a form's send, which receives a body with the password.
 *  @returns {{asked: boolean, asking: (send: (values: Record<string, any>, password: Record<string,
 * any>) => Promise<any>) => (values: Record<string, any>) => Promise<any>}} */
export function useProof() {
  const [asked, ask] = useState(false);
  return {
    asked,
    asking: (send) => async (values) => {
      try {
        return await send(values, asked ? { password: values.password ?? "" } : {});
      } catch (error) {
        if (error instanceof Problem && error.code === "reauthentication_required") {
          ask(true);
        }
        throw error;
      }
    },
  };
}

/** The password field, shown once it is required. @param {{proof: ReturnType<typeof useProof>, errors: Record<string, string[]>}} props */
export const PasswordAgain = ({ proof, errors }) => proof.asked && html`
  <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} />`;
