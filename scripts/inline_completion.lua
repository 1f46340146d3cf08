-- Tries `pawl lsp` in Neovim without a screen: opens a file, asks for an inline completion and puts it into the text.
--
--   PAWL=build/pawl PAWL_FILE=a.ts PAWL_LINE=6 PAWL_COLUMN=3 PAWL_OUT=out.json \
--     nvim --headless -u NONE -n -c 'luafile scripts/inline_completion.lua'
--
-- The method is of version 3.18 of the protocol, which Neovim knows by itself from 0.12 on; here the request is made by hand, so
-- that any Neovim from 0.7 on does. The language is that of the file's name, or PAWL_LANGUAGE. PAWL_OUT gets
-- {"items": [...], "line": "the line with the completion", "error": "..."}.

local function finish(report)
  local file = io.open(os.getenv('PAWL_OUT') or '/dev/stdout', 'w')
  file:write(vim.fn.json_encode(report), '\n')
  file:close()
  vim.cmd('qall!')
end

local command = { os.getenv('PAWL') or 'build/pawl', 'lsp' }
if os.getenv('PAWL_MODEL') then
  vim.list_extend(command, { '--model', os.getenv('PAWL_MODEL') })
end
vim.cmd('edit ' .. vim.fn.fnameescape(os.getenv('PAWL_FILE')))
local languages = { py = 'python', ts = 'typescript', tsx = 'typescriptreact', java = 'java' }
local language = os.getenv('PAWL_LANGUAGE') or languages[vim.fn.expand('%:e')]
if not language then
  finish({ error = 'PAWL_FILE: the language is not known by the name; PAWL_LANGUAGE names it' })
  return
end
vim.bo.filetype = language
local client = vim.lsp.start_client({ name = 'pawl', cmd = command, root_dir = vim.fn.getcwd() })
if not client then
  finish({ error = 'the server cannot be started' })
  return
end
vim.lsp.buf_attach_client(0, client)
if not vim.wait(30000, function() return vim.lsp.buf_get_clients(0)[client] ~= nil end, 50) then
  finish({ error = 'the server did not answer' })
  return
end
local line, column = tonumber(os.getenv('PAWL_LINE')) - 1, tonumber(os.getenv('PAWL_COLUMN')) - 1
local answers, problem = vim.lsp.buf_request_sync(0, 'textDocument/inlineCompletion', {
  textDocument = vim.lsp.util.make_text_document_params(),
  position = { line = line, character = column },
  context = { triggerKind = 1 },
}, 30000)
local answer = answers and answers[client]
if problem or not answer or answer.error then
  finish({ error = problem or (answer and answer.error and answer.error.message) or 'no answer' })
  return
end
local items = answer.result.items or answer.result
if items[1] then
  vim.api.nvim_buf_set_text(0, line, column, line, column, vim.split(items[1].insertText, '\n'))
end
finish({ items = items, line = vim.api.nvim_buf_get_lines(0, line, line + 1, false)[1] })
