import Foundation
import Testing

@Suite("The surface of the SDK")
struct SurfaceTests {
    @Test(
        "two declarations that mean the same to a caller are one",
        arguments: [
            ("class func default() -> CKContainer", "static func `default`() -> CKContainer"),
            ("func add(_: CKOperation)", "final func add(_ operation: CKOperation)"),
            ("func a(for: [String: Int] = _)", "public func a(for ids: [String : Int] = [:])"),
            (
                "func f(completionHandler: (A?, Error?) -> Void)",
                "@preconcurrency func f(completionHandler: @escaping @Sendable (A?, (any Error)?) -> Void)"
            ),
            ("static let a: B", "static var a: B { get }"),
            ("var a: B { get set }", "var a: B"),
            ("subscript(_: String) -> B? { get set }", "subscript(key: String) -> (any B)? { get set }"),
            ("var a: A & Sendable { get }", "var a: any A & Sendable { get }"),
            ("func f<R>(a: (R) -> A) -> R", "func f<Value>(a body: (Value) -> A) -> Value"),
            ("func subscription(for: A) -> B", "func subscription(for id: A) -> B"),
            ("init(a: String = _, b: B = _)", "convenience init(a name: String = UUID().uuidString, b: B = .default)"),
        ])
    func sameForm(first: String, second: String) {
        #expect(DeclarationForm(first) == DeclarationForm(second))
    }

    @Test(
        "declarations that differ for a caller are two",
        arguments: [
            ("func a(_: String)", "func a(for: String)"), ("func a() async throws", "func a() async"),
            ("var a: B { get }", "var a: B { get set }"), ("func a(b: Int)", "func a(b: Int = 1)"),
            ("var a: B?", "var a: B"), ("func a() -> (b: Int, c: Int)", "func a() -> (b: Int, d: Int)"),
            ("init?(coder: NSCoder)", "init(coder: NSCoder)"), ("static func a()", "func a()"),
        ])
    func otherForm(first: String, second: String) {
        #expect(DeclarationForm(first) != DeclarationForm(second))
    }

    @Test("names of types are looked through")
    func aliases() {
        var aliases = TypeAliases()
        aliases.add("Outer.ID", for: "OuterID")
        aliases.add("Outer.Key", for: "String")
        #expect(aliases.resolved("var a:[Outer.ID:Outer.Key]{get}") == "var a:[OuterID:String]{get}")
        #expect(aliases.resolved("Outer.IDs") == "Outer.IDs")
        #expect(aliases.resolved("Outer.ID.Part") == "OuterID.Part")
    }

    @Test("a comparison tells what is there, what is otherwise and what is missing")
    func comparison() throws {
        let graph = try SymbolGraph(json: Data(Self.graph.utf8))
        let list = SurfaceList.parse(
            """
            = Box.ID M class
            M var name: String { get }
            = Box M class
            M func open(with: Box.ID) throws
            M func close()
            M init()
            """)
        let comparison = SurfaceComparison(list, in: graph)
        #expect(
            comparison.rows.map(\.finding) == [
                .same, .same, .same, .differs("func open(with id: BoxID)"), .missing, .same,
            ])
        #expect(comparison.faults.count == 2)
        #expect(comparison.document.contains("4 of 6 members"))
    }

    @Test("no member is in the list twice")
    func listIsClean() {
        var seen: Set<String> = []
        for member in SurfaceList.members {
            #expect(seen.insert("\(member.owner) \(member.declaration)").inserted, "twice: \(member)")
        }
        #expect(seen.count > 400)
    }

    /// Run by `scripts/sdk-surface`, which extracts the symbol graphs and names their folder.
    @Test(
        "the modules have the members of the list",
        .enabled(if: ProcessInfo.processInfo.environment["ZONEKEEPER_SYMBOL_GRAPHS"] != nil))
    func modulesHaveTheMembers() throws {
        let environment = ProcessInfo.processInfo.environment
        let folder = URL(fileURLWithPath: try #require(environment["ZONEKEEPER_SYMBOL_GRAPHS"]))
        let comparison = SurfaceComparison(SurfaceList.members, in: try SymbolGraph(folder: folder))
        if let file = environment["ZONEKEEPER_SURFACE_TABLE"] {
            try Data(comparison.document.utf8).write(to: URL(fileURLWithPath: file))
        }
        #expect(comparison.faults.isEmpty, "\(comparison.faults.joined(separator: "\n"))")
    }

    private static let graph = """
        {"symbols": [
          {"kind": {"identifier": "swift.class"}, "identifier": {"precise": "1"}, "pathComponents": ["Box"],
           "declarationFragments": [{"spelling": "class Box"}]},
          {"kind": {"identifier": "swift.class"}, "identifier": {"precise": "2"}, "pathComponents": ["BoxID"],
           "declarationFragments": [{"spelling": "final class BoxID"}]},
          {"kind": {"identifier": "swift.class"}, "identifier": {"precise": "3"}, "pathComponents": ["Base"],
           "declarationFragments": [{"spelling": "class Base"}]},
          {"kind": {"identifier": "swift.init"}, "identifier": {"precise": "4"}, "pathComponents": ["Base", "init()"],
           "declarationFragments": [{"spelling": "init()"}]},
          {"kind": {"identifier": "swift.typealias"}, "identifier": {"precise": "5"}, "pathComponents": ["Box", "ID"],
           "declarationFragments": [{"spelling": "typealias "}, {"spelling": "ID = BoxID"}]},
          {"kind": {"identifier": "swift.property"}, "identifier": {"precise": "6"}, "pathComponents": ["BoxID", "name"],
           "declarationFragments": [{"spelling": "let name: String"}]},
          {"kind": {"identifier": "swift.method"}, "identifier": {"precise": "7"}, "pathComponents": ["Box", "open(with:)"],
           "declarationFragments": [{"spelling": "func open(with id: BoxID)"}]}
        ], "relationships": [{"kind": "inheritsFrom", "source": "1", "target": "3"}]}
        """
}
