-- Requests of wrk that leave together, as many as the argument says; afterwards the counts of all, in one line.
function init(args)
    local requests = {}
    for i = 1, tonumber(args[1]) do requests[i] = wrk.format("GET", "/") end
    all = table.concat(requests)
end

function request() return all end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d\n", summary.requests, summary.duration,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
