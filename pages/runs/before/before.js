// Tells what the address of the page before named, if that was a run.

import { searchBefore } from "./component.js";

export default function before({ setTriggerValue }) {
  const search = searchBefore();
  if (new URLSearchParams(search).has("run")) setTriggerValue("named", search);
}
