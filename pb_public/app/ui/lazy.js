// Components with code that loads when they are first shown: an unopened tab is not loaded.
import { Waiting } from "./states.js";
import { html, useEffect, useState } from "../view.js";

/** @param {() => Promise<any>} load imports the component */
export function lazy(load) {
  /** @type {any} */
  let known = null;
  return function Lazy(/** @type {Record<string, any>} */ props) {
    const [Component, setComponent] = useState(() => known);
    useEffect(() => {
      let wanted = true;
      void load().then((component) => {
        known = component;
        wanted && setComponent(() => component);
      });
      return () => { wanted = false; };
    }, []);
    return Component ? html`<${Component} ...${props} />` : html`<${Waiting} />`;
  };
}
