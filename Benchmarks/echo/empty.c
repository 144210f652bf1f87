// The system calls of an empty loop: an epoll, an eventfd and a timerfd, one awaited expiry, and the end.

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event interest = {.events = EPOLLIN | EPOLLET, .data.fd = event};
    if (epoll < 0 || event < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &interest) < 0) return 1;
    interest.data.fd = timer;
    struct itimerspec once = {.it_value = {.tv_nsec = 1}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &interest) < 0 || timerfd_settime(timer, 0, &once, NULL) < 0) return 1;
    struct epoll_event ready;
    return epoll_wait(epoll, &ready, 1, -1) == 1 ? 0 : 1;
}
