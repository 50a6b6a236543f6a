// Send the query of the previous page's address, if it names a run.

import { searchBefore } from "./shared/component.js";

export default function before({ setTriggerValue }) {
  const search = searchBefore();
  if (new URLSearchParams(search).has("run")) setTriggerValue("named", search);
}
