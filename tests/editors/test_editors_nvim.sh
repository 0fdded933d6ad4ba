# Neovim's client, which knows nothing of this server, talks to it: diagnostics, an edit, a rename, completion, and the end;
# skipped where there is no Neovim with a client.
command -v nvim >/dev/null && nvim --headless -u NONE -c 'lua if not vim.lsp.buf_attach_client then vim.cmd("cquit") end' -c 'qall' 2>/dev/null ||
    { echo 'skipped: no nvim with a client'; exit 77; }
. tests/cli/common.sh
cat >"$work/model.pnet" <<'END'
pnet 1
param v = 5cm
input cloud { xyz : position }
net n(p: cloud) { return ones(grid(p, v)) -> lineer(3) }  # 🚀
y = n(cloud)
END
cat >"$work/talk.lua" <<END
local out, file = {}, '$work/model.pnet'
local function say(...) out[#out + 1] = table.concat({ ... }, ' ') end
vim.cmd('edit ' .. file)
local start = vim.lsp.start_client or vim.lsp.start
local id = start({ name = 'pnetc', cmd = { '$(realpath "$pnetc")', 'lsp' }, root_dir = '$work' })
vim.lsp.buf_attach_client(0, id)
local function wait(count) vim.wait(10000, function() return #vim.diagnostic.get(0) == count end) end
local function ask(method, line, character, more)
  local params = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = line, character = character } }
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', params, more or {}), 10000)
  return answers[id].result
end
wait(1)
for _, d in ipairs(vim.diagnostic.get(0)) do say(d.lnum, d.col, d.end_col, d.message) end
say(ask('textDocument/hover', 3, 38).contents.value)
vim.api.nvim_buf_set_text(0, 3, 45, 3, 51, { 'linear' })
wait(0)
say('diagnostics', #vim.diagnostic.get(0))
vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', 1, 6, { newName = 'cell' }), 'utf-16')
for _, item in ipairs(ask('textDocument/completion', 3, 55)) do
  if item.label == 'channels=' then say(item.label, item.detail) end
end
vim.cmd('write')
vim.lsp.stop_client(id)
vim.wait(10000, function() return vim.lsp.client_is_stopped(id) end)
say('stopped', tostring(vim.lsp.client_is_stopped(id)))
vim.fn.writefile(vim.split(table.concat(out, '\n'), '\n'), '$work/said')
vim.cmd('qall!')
END
cat >"$work/want" <<'END'
3 45 51 there is no layer, block or net 'lineer'
help: did you mean linear?
```pnet
param v = 5cm
```

`5cm`
diagnostics 0
channels= whole number, required
stopped true
END
XDG_STATE_HOME=$work timeout 60 nvim --headless -u NONE -i NONE -n -c "luafile $work/talk.lua" >"$out" 2>"$err" </dev/null ||
    fail "nvim: $(head -c 500 "$err")"
if diff "$work/want" "$work/said" >"$work/diff"; then pass; else fail "$(cat "$work/diff" "$err")"; fi
check 'renamed' grep -qF 'ones(grid(p, cell)) -> linear(3) }  # 🚀' "$work/model.pnet"
run 0 check "$work/model.pnet"
finish
