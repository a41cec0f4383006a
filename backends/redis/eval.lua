-- Eval: compare, and go on with the caller's script, which is the function fenced.
-- ARGV: signature, token, and the script's. KEYS from the third on are the
-- script's. Nil if the safe holds anything else; what the script returns is
-- wrapped, so that its nil and its errors are not taken for this answer, nor for
-- the server's own (NOSCRIPT, MOVED), after which a client sends a command again.
local rec, answer = owned(ARGV[1], ARGV[2])
if not rec then
  return answer
end
local keys, args = {}, {}
for i = 3, #KEYS do
  keys[i - 2] = KEYS[i]
end
for i = 3, #ARGV do
  args[i - 2] = ARGV[i]
end
local ok, result = pcall(fenced, keys, args)
if not ok and type(result) ~= 'table' then
  result = {err = tostring(result)}
end
return {result}
