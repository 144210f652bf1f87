import Promises

func loopWithoutItsModule() {
    EventLoop.current.stop()  // error: cannot find 'EventLoop' in scope
}
