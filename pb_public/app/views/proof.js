// Some time after the sign-in the service wants the password again before second factors change.
import { Problem } from "../api.js";
import { Field } from "../ui/form.js";
import { html, useState } from "../view.js";

/** Remembers whether the password was asked for. asking wraps what a form sends, which gets the body that proves it.
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

/** The field for it, once it was asked for. @param {{proof: ReturnType<typeof useProof>, errors: Record<string, string[]>}} props */
export const PasswordAgain = ({ proof, errors }) => proof.asked && html`
  <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} />`;
