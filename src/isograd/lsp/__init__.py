"""isograd in the editor: what a scan knows, as diagnostics, hovers, edits and completions.

The way of the data: `server` keeps the open documents, `project` scans a text among its neighbours,
`analysis` finds the exact place of each result, and `diagnostics`, `hover`, `rewrites`, `actions`
and `completion` answer from that value alone.
"""
