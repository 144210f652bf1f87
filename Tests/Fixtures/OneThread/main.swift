import Promises
import Reactor
import ReactorIO

// At top level, where variables and closures belong to the main actor.
let bank = Bank()
var total = 0

let balance = chains(bank).get { total += $0 }
print("balance \(try hang(balance, timeout: .seconds(2)))")

let accounts = several(bank).get { total += $0.count }
print("accounts \(try hang(accounts, timeout: .seconds(2)).count)")

let carl = Account("carl", balance: 3)
when(fulfilled: callbacks(bank), countDown(carl)).done { first, second in
    total += first.balance + second.balance
}.catch { error in
    print(error)
}
try EventLoop.current.run()

total += try hang(patience(carl)).balance

endings(bank, carl)
let both = when(fulfilled: operators(bank, carl), sequences(bank))
let rest = both.done { account, others in
    total += account.balance
    total += others.count
}
try hang(rest)

let button = Button()
let pressed = button.map { total += $0 }
button.press()
try hang(pressed)

let chat = try Chat()
let served = chat.serve()
print("reply of \(try hang(client(of: chat, carl), timeout: .seconds(2)).count) bytes")
chat.close()
try hang(served, timeout: .seconds(2))
let register = try Register()
let selling = register.serve(carl)
let sale = connect(to: register.address).then { client in
    client.write("3\n").then { client.readLine() }.ensure { client.close() }
}
print("sold for \(try hang(sale, timeout: .seconds(2)) ?? "nothing")")
try hang(selling, timeout: .seconds(2))
print("balances \(try hang(balances(), timeout: .seconds(2)))")
print("total \(total)")
