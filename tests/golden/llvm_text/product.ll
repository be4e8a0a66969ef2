; program test
; %b0 weights f32 weight
; %b1 child i32 index
; %b2 h f32 state

define void @kernel(ptr noundef %args) #0 {
entry:
  %a7 = alloca <16 x float>
  %buffers = load ptr, ptr %args, align 8, !invariant.load !0
  %at0 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %at0, align 8, !invariant.load !0
  %at1 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %at1, align 8, !invariant.load !0
  %at2 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b2 = load ptr, ptr %at2, align 8, !invariant.load !0
  %at.barrier = getelementptr inbounds i8, ptr %args, i64 8
  %barrier = load ptr, ptr %at.barrier, align 8, !invariant.load !0
  %at.context = getelementptr inbounds i8, ptr %args, i64 16
  %context = load ptr, ptr %at.context, align 8, !invariant.load !0
  %at.worker = getelementptr inbounds i8, ptr %args, i64 24
  %worker = load i32, ptr %at.worker, align 4, !invariant.load !0
  %at.workers = getelementptr inbounds i8, ptr %args, i64 28
  %workers = load i32, ptr %at.workers, align 4, !invariant.load !0
  %v0 = load i32, ptr %b1, align 4, !alias.scope !7, !noalias !8, !invariant.load !0
  %v6 = icmp slt i32 0, %v0
  br i1 %v6, label %loop1, label %done3
loop1:
  %i4 = phi i32 [ 0, %entry ], [ %i5, %latch2 ]
  store <16 x float> splat (float 0x0000000000000000), ptr %a7, align 4
  %v13 = icmp slt i32 0, 64
  br i1 %v13, label %loop8, label %done10
loop8:
  %i11 = phi i32 [ 0, %loop1 ], [ %i12, %latch9 ]
  %v14 = sext i32 %i4 to i64
  %v15 = getelementptr inbounds i32, ptr %b1, i64 %v14
  %v16 = load i32, ptr %v15, align 4, !alias.scope !7, !noalias !8, !invariant.load !0
  %v17 = sext i32 %v16 to i64
  %v18 = mul nsw i64 %v17, 64
  %v19 = sext i32 %i11 to i64
  %v20 = add nsw i64 %v18, %v19
  %v21 = getelementptr inbounds float, ptr %b2, i64 %v20
  %v22 = load float, ptr %v21, align 4, !alias.scope !9, !noalias !10
  %v23 = insertelement <16 x float> poison, float %v22, i64 0
  %v24 = shufflevector <16 x float> %v23, <16 x float> poison, <16 x i32> zeroinitializer
  %v25 = mul nsw i64 %v19, 16
  %v26 = getelementptr inbounds float, ptr %b0, i64 %v25
  %v27 = load <16 x float>, ptr %v26, align 4, !alias.scope !5, !noalias !6, !invariant.load !0
  %v28 = load <16 x float>, ptr %a7, align 4
  %v29 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v24, <16 x float> %v27, <16 x float> %v28)
  store <16 x float> %v29, ptr %a7, align 4
  br label %latch9
latch9:
  %i12 = add nuw nsw i32 %i11, 1
  %v30 = icmp slt i32 %i12, 64
  br i1 %v30, label %loop8, label %done10
done10:
  %v31 = load <16 x float>, ptr %a7, align 4
  %v32 = fcmp olt <16 x float> %v31, splat (float 0x0000000000000000)
  %v33 = select <16 x i1> %v32, <16 x float> splat (float 0x0000000000000000), <16 x float> %v31
  %v34 = sext i32 %i4 to i64
  %v35 = mul nsw i64 %v34, 64
  %v36 = getelementptr inbounds float, ptr %b2, i64 %v35
  store <16 x float> %v33, ptr %v36, align 4, !alias.scope !9, !noalias !10
  %v39 = icmp sgt i32 %workers, 1
  br i1 %v39, label %wait37, label %done38
wait37:
  call void %barrier(ptr %context) nounwind
  br label %done38
done38:
  br label %latch2
latch2:
  %i5 = add nuw nsw i32 %i4, 1
  %v40 = icmp slt i32 %i5, %v0
  br i1 %v40, label %loop1, label %done3
done3:
  ret void
}

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)

attributes #0 = { nounwind "probe-stack"="inline-asm" "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind willreturn memory(none) }
attributes #2 = { noinline nounwind "probe-stack"="inline-asm" "prefer-vector-width"="512" "min-legal-vector-width"="512" }

!0 = !{}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
!5 = !{!2}
!6 = !{!3, !4}
!7 = !{!3}
!8 = !{!2, !4}
!9 = !{!4}
!10 = !{!2, !3}
