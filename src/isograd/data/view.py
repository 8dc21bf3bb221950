"""A page to look through samples: filtered by label and finding, a page at a time.

The page holds the samples that the inventory chose by the seed, each already small, so that a set
of a million samples makes a page of the same size.  It needs no network and no code of the data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape

from isograd.data.model import DataReport, Shown

_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px/1.4 system-ui,sans-serif;margin:1.5rem;color:#222;background:#fff}}
main{{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:1rem}}
figure{{margin:0;border:1px solid #ddd;border-radius:6px;padding:.6rem;overflow:hidden}}
img{{max-width:100%;image-rendering:auto}}figcaption{{font-weight:600;word-break:break-all}}
pre{{white-space:pre-wrap;word-break:break-word;margin:.3rem 0;font-size:12px}}
.value{{display:inline-block;margin-right:.6rem;padding-left:.3rem;
border-left:.8rem solid transparent}}
.code{{color:#b00020}}nav>*{{margin-right:.8rem}}</style>
<h1>{title}</h1><p>{about}</p>{links}
<nav><label>label <select id="label"></select></label>
<label>finding <select id="code"></select></label>
<button id="back">&larr;</button><span id="where"></span><button id="next">&rarr;</button></nav>
<main id="samples"></main>
<script type="application/json" id="data">{data}</script>
<script>
"use strict";
const all=JSON.parse(document.getElementById("data").textContent),size=24;let page=0;
const find=id=>document.getElementById(id);
function options(id,values){{for(const v of ["",...[...new Set(values)].sort()]){{
const o=document.createElement("option");o.value=v;o.textContent=v||"all";find(id).append(o)}}}}
options("label",all.map(s=>s.label).filter(Boolean));options("code",all.flatMap(s=>s.codes));
function add(parent,kind,text,extra){{const e=document.createElement(kind);
if(text)e.textContent=text;Object.assign(e,extra||{{}});parent.append(e);return e}}
function draw(){{const l=find("label").value,c=find("code").value;
const kept=all.filter(s=>(!l||s.label===l)&&(!c||s.codes.includes(c)));
const last=Math.max(0,Math.ceil(kept.length/size)-1);page=Math.min(Math.max(page,0),last);
find("where").textContent=` page ${{page+1}} of ${{last+1}}, ${{kept.length}} samples `;
const box=find("samples");box.replaceChildren();
for(const s of kept.slice(page*size,(page+1)*size)){{const f=add(box,"figure");
add(f,"figcaption",[s.split,s.key].filter(Boolean).join(": "));
if(s.label)add(f,"div","label "+s.label);
for(const code of s.codes)add(f,"div",code,{{className:"code"}});
for(const[n,u]of s.pictures){{add(f,"div",n);add(f,"img","",{{src:u,alt:n,loading:"lazy"}});
for(const[c,t]of s.legends[n]||[]){{const e=add(f,"span",t,{{className:"value"}});
if(c)e.style.borderColor=c}}}}
for(const[n,u]of s.sounds){{add(f,"div",n);add(f,"audio","",{{src:u,controls:true}})}}
for(const[n,t]of s.texts)add(f,"pre",n+": "+t)}}}}
for(const id of["label","code"])find(id).onchange=()=>{{page=0;draw()}};
find("back").onclick=()=>{{page--;draw()}};find("next").onclick=()=>{{page++;draw()}};draw();
</script>
"""


def render_view(report: DataReport) -> bytes:
    """The page as UTF-8."""
    source = report.sources[0]
    about = f"{source.samples:,} samples ({source.format}), of which {len(source.shown):,} are "
    about += f"here: a uniform choice by the seed {report.seed}."
    return view_page(source.shown, f"isograd data {source.path}", about)


def view_page(
    shown: Sequence[Shown], title: str, about: str, links: Sequence[tuple[str, str]] = ()
) -> bytes:
    """A page of samples as UTF-8; links: to other pages, each with its text and address."""
    # "<" is escaped so that no text of the data can end the element
    data = json.dumps([_entry(one) for one in shown], ensure_ascii=True).replace("<", "\\u003c")
    anchors = " ".join(f'<a href="{escape(to)}">{escape(text)}</a>' for text, to in links)
    page = _PAGE.format(title=escape(title), about=escape(about), links=anchors, data=data)
    return page.encode("utf-8", errors="backslashreplace")


def view_script() -> str:
    """The script of such a page, by whose digest a server's policy allows it."""
    page = view_page((), "", "").decode()
    return page.rpartition("<script>")[2].partition("</script>")[0]


def _entry(one: Shown) -> dict[str, object]:
    return {
        "key": one.key,
        "split": one.split,
        "label": one.label,
        "codes": one.codes,
        "pictures": [[name, _url("image/png", p)] for name, p in one.pictures.items()],
        "sounds": [[name, _url("audio/wav", s)] for name, s in one.sounds.items()],
        "legends": one.legends,
        "texts": list(one.texts.items()),
    }


def _url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
