const bundle = document.querySelector('script[src*="/static/js/index."]');
const base = bundle ? bundle.src.split("/static/js/")[0] : location.origin;
for (const [rel, name] of PRELOADED) {
const href = `${base}/files/${name}`;
if (!document.querySelector(`link[href="${href}"]`)) {
document.head.append(Object.assign(document.createElement("link"), { rel, href, as: "script" }));
}
}
let n = 0;
const draw = (view, its) => import(`${base}/files/SCRIPT?${n}`).then(
(script) => (its.end = script.default(view, base)), () => setTimeout(draw, ++n * 200, view, its));
export default (view) => {
const its = {};
draw(view, its);
return () => its.end?.();
};
