import ReactorConsole

@main enum OnlyConsole {
    static func main() throws {
        let console = try Console.start(at: "127.0.0.1:0")
        check("\(console.address)".hasPrefix("127.0.0.1:"))
        console.stop()
    }
}

func check(_ condition: Bool) { precondition(condition) }
