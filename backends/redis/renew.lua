-- Put, under the signature that is there: SET, without an expiry, at the revision
-- given. It never brings a record back.
-- ARGV: signature, token, revision; next text without numbers, next revision;
-- channel. Nil if the safe holds anything else.
local done = repeated(ARGV[1], ARGV[5])
if done then
  return done
end
local rec, text = held(ARGV[1], ARGV[2], ARGV[3])
if not rec then
  return text
end
local next = numbered(ARGV[4], ARGV[2], ARGV[5])
if #next <= #text then
  -- It takes no more memory than there is in use, and GETEX counts as a write, after
  -- which a script is not held to maxmemory: the leader stays.
  redis.call('GETEX', KEYS[1])
end
store(next, '')
hint(ARGV[6])
return next
