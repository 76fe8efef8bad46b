import Foundation
import Testing

@testable import simulate

@Suite("Faults that are planted to measure the simulator")
struct PlantedFaultTests {
    @Test("each finds its place in the sources exactly once")
    func places() throws {
        let planter = try Planter { try Repository.text("Sources/\($0)") }
        #expect(!planter.files.isEmpty)
    }

    @Test("a fault whose place is missing, or there twice, is told by its name", arguments: [0, 2])
    func misplaced(count: Int) throws {
        let text = String(repeating: "let a = 1\n", count: count)
        let mutant = Mutant("one more", .init("A.swift", "let a = 1", "let a = PLANTED ? 2 : 1"))
        let error = #expect(throws: Planter.Misplaced.self) { try Planter([mutant]) { _ in text } }
        #expect(error?.count == count)
        #expect(error?.description.contains("one more") == true)
    }

    @Test("two faults may share a place")
    func shared() throws {
        let edit = Mutant.Edit("A.swift", "a()", "if !PLANTED { a() }")
        let planter = try Planter([Mutant("first", edit), Mutant("second", edit)]) { _ in "a()" }
        #expect(planter.files["A.swift"] == "if !planted(1) { if !planted(2) { a() } }")
    }

    @Test(
        "each form of a condition becomes one that notes where the fault makes a difference",
        arguments: [
            ("PLANTED || a", "PlantedFault(1) || a"), ("!PLANTED && a", "!PlantedFault(1) && a"),
            ("PLANTED(a, b)", "planted(1, a, b)"), ("a || PLANTED", "a || planted(1)"), ("!PLANTED", "!planted(1)"),
        ])
    func forms(_ replacement: String, _ planted: String) throws {
        let planter = try Planter([Mutant("one more", .init("A.swift", "a", replacement))]) { _ in "a" }
        #expect(planter.files["A.swift"] == planted)
    }

    @Test("names are unique")
    func names() {
        #expect(Set(Mutant.all.map(\.name)).count == Mutant.all.count)
    }
}
