// Components whose code loads when they are first shown: an unopened tab is not loaded.
import { Waiting } from "./states.js";
import { html, useEffect, useState } from "../view.js";

/** @param {() => Promise<any>} load imports the component */
export function late(load) {
  /** @type {any} */
  let known = null;
  return function Late(/** @type {Record<string, any>} */ props) {
    const [Component, show] = useState(() => known);
    useEffect(() => {
      let wanted = true;
      void load().then((component) => {
        known = component;
        wanted && show(() => component);
      });
      return () => { wanted = false; };
    }, []);
    return Component ? html`<${Component} ...${props} />` : html`<${Waiting} />`;
  };
}
