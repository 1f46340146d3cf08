-- The part of bench/lsp_places.py that runs in Neovim without a screen: edits buffers at the places of PAWL_JOB, asks for
-- lists through Neovim's own client, and writes what comes to PAWL_OUT.
local job = vim.fn.json_decode(table.concat(vim.fn.readfile(os.getenv('PAWL_JOB')), '\n'))
local pid_file = os.getenv('PAWL_OUT') .. '.pid'
local command = { 'sh', '-c', 'echo $$ > "$0"; exec "$@"', pid_file }
vim.list_extend(command, job.command)
vim.o.hidden = true
vim.o.swapfile = false

local function fail(text)
  io.stderr:write(text, '\n')
  vim.cmd('cquit!')
end

local function processor_ms(pid)
  local total = 0
  for _, task in ipairs(vim.fn.glob('/proc/' .. pid .. '/task/*/schedstat', true, true)) do
    local file = io.open(task)
    if file then
      total = total + tonumber(file:read('*l'):match('^%d+'))
      file:close()
    end
  end
  return total / 1e6
end

local client = vim.lsp.start_client({ name = 'pawl', cmd = command, root_dir = vim.fn.getcwd(), flags = { debounce_text_changes = 0 } })
if not client then fail('the server cannot be started') end
local results, opened, pid = {}, {}, nil

local function list(line, column)
  local answers, problem = vim.lsp.buf_request_sync(0, 'textDocument/completion', {
    textDocument = vim.lsp.util.make_text_document_params(),
    position = { line = line, character = column },
    context = { triggerKind = 1 },
  }, 30000)
  local answer = answers and answers[client]
  if problem or not answer or answer.error then fail(problem or vim.inspect(answer)) end
  return answer.result
end

for _, place in ipairs(job.places) do
  local buffer = vim.fn.bufadd(place.file)
  vim.fn.bufload(buffer)
  vim.api.nvim_set_current_buf(buffer)
  if not opened[place.file] then
    opened[place.file] = true
    vim.bo.filetype = place.language
    vim.bo.buflisted = true
    vim.lsp.buf_attach_client(0, client)
    if not vim.wait(30000, function() return vim.lsp.buf_get_clients(0)[client] ~= nil end, 5) then fail('no answer to initialize') end
    pid = pid or vim.fn.readfile(pid_file)[1]
    list(place.line, place.character)
  end
  local line, column, name = place.line, place.character, place.name
  vim.api.nvim_buf_set_text(0, line, column, line, column + #name, { '' })
  for _, typed in ipairs({ '', name:sub(1, 1) }) do
    local before = processor_ms(pid)
    if typed ~= '' then vim.api.nvim_buf_set_text(0, line, column, line, column, { typed }) end
    local answer = list(line, column + #typed)
    local labels = vim.tbl_map(function(item) return item.label end, answer.items)
    table.insert(results, {
      typed = typed,
      ms = processor_ms(pid) - before,
      open = answer.isIncomplete,
      labels = labels,
    })
  end
  vim.api.nvim_buf_set_text(0, line, column, line, column + 1, { name })
end
local file = io.open(os.getenv('PAWL_OUT'), 'w')
file:write(vim.fn.json_encode(results))
file:close()
vim.cmd('qall!')
