import Testing

@Suite("Sizes")
struct SizeTests {
    @Test("no file is longer than 500 lines")
    func files() throws {
        let lengths = Repository.swift.map { ($0.file, $0.source.lines.count) }
        try Exceptions(name: "files", bound: 500, advice: "a file holds one concept; move one of its concepts out")
            .check(Dictionary(uniqueKeysWithValues: lengths))
    }

    @Test("no function is longer than 40 lines, its signature counted")
    func functions() throws {
        var lengths: [String: Int] = [:]
        for (file, source) in Repository.swift where file.hasPrefix("Sources/") {
            let found = Declarations(source)
            #expect(found.isBalanced, "\(file): SourceText.swift takes code for text here, or text for code")
            for function in found.functions {
                lengths["\(file) \(function.name)", default: 0].raise(to: function.lines.count)
            }
        }
        try Exceptions(name: "functions", bound: 40, advice: "name its steps, and make each a function").check(lengths)
    }

    @Test("no type is larger than 600 lines with all its extensions in a target")
    func types() throws {
        var sizes: [String: Int] = [:]
        for (file, source) in Repository.swift where file.hasPrefix("Sources/") {
            for type in Declarations(source).types {
                sizes["\(Repository.target(of: file)) \(type.name)", default: 0] += type.lineCount
            }
        }
        try Exceptions(name: "types", bound: 600, advice: "split its state into values that work together").check(sizes)
    }

    @Test("wrapped signatures and initializers are measured, and strings and comments are no code")
    func measure() {
        let source = SourceText(
            ##"""
            struct Outer {
                /* func commented() { */
                init(
                    _ text: String = "func quoted() {",
                    then: () -> Void = { print("}") }
                ) where Never: Sendable
                {
                    if text == #"\#(text + "{")"# { then() }
                }
                protocol Inner {
                    func requirement(_ number: Int)
                    var property: Int { get }
                }
                class func short() {}
            }
            extension Outer {
                private(set) static var closure: () -> Int = {
                    7
                }
                func matches(_ text: String) -> Bool {
                    text.contains(/"{/) || "\(text.map { "}\($0)" })".isEmpty
                }
            }
            """##)
        let found = Declarations(source)
        #expect(found.isBalanced)
        #expect(found.functions.map(\.name) == ["init", "short", "matches"])
        #expect(found.functions.map(\.lines.count) == [7, 1, 3])
        #expect(found.types.map(\.name) == ["Outer.Inner", "Outer", "Outer"])
        #expect(found.types.map(\.lineCount) == [4, 11, 8])
    }
}

extension Int {
    fileprivate mutating func raise(to other: Int) { self = Swift.max(self, other) }
}
